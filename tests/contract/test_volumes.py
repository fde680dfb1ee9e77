"""A volume that an admin made is bound to the claim that names it or fits it, and released with it; classes are what they were made as."""

from tests.contract.manifests import claim, volume
from tests.contract.space import Space


async def test_claim_binds_smallest_fitting_volume_and_releases_it(space: Space, cluster: Space, name: str) -> None:
    for number, size in enumerate(("9Gi", "2Gi", "1Gi")):
        (await cluster.create("persistentvolumes", volume(f"{name}-{number}", size))).ok(201)
    try:
        wanted = claim(name, "2Gi", storageClassName=name)
        for number in range(3):
            await cluster.until(
                "persistentvolumes",
                f"{name}-{number}",
                lambda pv: pv["status"].get("phase") == "Available",
                "is free",
            )
        (await space.create("persistentvolumeclaims", wanted)).ok(201)
        bound = await space.until(
            "persistentvolumeclaims", name, lambda pvc: pvc["status"]["phase"] == "Bound", "should be bound"
        )
        assert bound["spec"]["volumeName"] == f"{name}-1"
        assert bound["status"]["capacity"] == {"storage": "2Gi"}
        assert bound["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] == "yes"
        taken = (await cluster.get("persistentvolumes", f"{name}-1")).ok(200)
        assert taken["spec"]["claimRef"]["uid"] == bound["metadata"]["uid"]
        assert taken["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"]
        (await space.delete("persistentvolumeclaims", name)).ok(200)
        await cluster.until(
            "persistentvolumes", f"{name}-1", lambda pv: pv["status"].get("phase") == "Released", "should be released"
        )
    finally:
        for number in range(3):
            await cluster.delete("persistentvolumes", f"{name}-{number}")
