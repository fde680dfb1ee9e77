"""A pod may describe a claim that is made for it, belongs to it, and goes with it.

Asked for where the server has it: since 1.23 always, before that when its administrator switched it on (GenericEphemeralVolume).
"""

import pytest

from tests.contract.client import Object
from tests.contract.manifests import pod
from tests.contract.space import Space

CLAIM: Object = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def with_scratch(name: str, template: Object | None) -> Object:
    source: Object = {} if template is None else {"volumeClaimTemplate": template}
    return pod(name, spec={"volumes": [{"name": "scratch", "ephemeral": source}]})


@pytest.fixture(autouse=True)
async def supported(space: Space, name: str, version: tuple[int, int]) -> None:
    if version >= (1, 23):
        return
    tried = await space.create("pods", with_scratch(f"{name}-tried", {"spec": CLAIM}), dryRun="All")
    if tried.status != 201:
        pytest.skip(
            "generic ephemeral volumes came with Kubernetes 1.23, and this server has its early ones switched off"
        )


async def test_ephemeral_claim_follows_its_template_and_pod(space: Space, name: str) -> None:
    template = {"metadata": {"labels": {"for": name}, "annotations": {"why": "to try"}}, "spec": CLAIM}
    made = (await space.create("pods", with_scratch(name, template))).ok(201)
    volume = made["spec"]["volumes"][0]["ephemeral"]["volumeClaimTemplate"]
    assert volume["spec"]["volumeMode"] == "Filesystem"
    claim = await space.until("persistentvolumeclaims", f"{name}-scratch", bool, "should be made")
    assert claim["metadata"]["labels"] == {"for": name}
    assert claim["metadata"]["annotations"]["why"] == "to try"
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": made["metadata"]["uid"]}
    assert claim["metadata"]["ownerReferences"] == [owner | {"controller": True, "blockOwnerDeletion": True}]
    assert {key: claim["spec"][key] for key in CLAIM} == CLAIM


async def test_the_claim_goes_with_the_pod(space: Space, name: str) -> None:
    (await space.create("pods", with_scratch(name, {"spec": CLAIM}))).ok(201)
    await space.until("persistentvolumeclaims", f"{name}-scratch", bool, "should be made")
    (await space.delete("pods", name, options={"gracePeriodSeconds": 0})).ok(200)
    await space.until_gone("persistentvolumeclaims", f"{name}-scratch")
