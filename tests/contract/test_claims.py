"""A claim in use outlives its deletion until its last pod is gone, and no claim shrinks."""

from tests.contract.client import Object
from tests.contract.manifests import binding, claim, pod
from tests.contract.space import Space


def with_claim(name: str) -> Object:
    return pod(name, spec={"volumes": [{"name": "files", "persistentVolumeClaim": {"claimName": name}}]})


async def test_claim_of_scheduled_pod_stays_until_pod_is_gone(space: Space, name: str) -> None:
    made = (await space.create("persistentvolumeclaims", claim(name))).ok(201)
    assert made["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    (await space.create("pods", with_claim(name))).ok(201)
    (await space.create("pods", binding(name, f"{name}-node"), name=name, sub="binding")).ok(201)
    # A finished pod counts: what it wrote may still be wanted.
    (await space.patch("pods", name, {"status": {"phase": "Succeeded"}}, sub="status")).ok(200)
    (await space.delete("persistentvolumeclaims", name)).ok(200)
    (await space.create("persistentvolumeclaims", claim(f"{name}-unused"))).ok(201)
    (await space.delete("persistentvolumeclaims", f"{name}-unused")).ok(200)
    await space.until_gone("persistentvolumeclaims", f"{name}-unused")
    held = (await space.get("persistentvolumeclaims", name)).ok(200)
    assert held["metadata"]["deletionTimestamp"]
    assert held["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    (await space.delete("pods", name, options={"gracePeriodSeconds": 0})).ok(200)
    await space.until_gone("persistentvolumeclaims", name)
