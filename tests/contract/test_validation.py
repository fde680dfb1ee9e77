"""An invalid object is refused with 422 and every field that is wrong, and a field that may not change stays as it is."""

from collections.abc import Sequence

from tests.contract.client import Object
from tests.contract.manifests import pod
from tests.contract.space import Space
from tests.contract.versions import Version

Problem = tuple[str, str]
INVALID, REQUIRED, UNSUPPORTED = "FieldValueInvalid", "FieldValueRequired", "FieldValueNotSupported"


def problems(refusal: Object) -> set[Problem]:
    """Fields with reasons; older servers repeat some, so they are a set."""
    return {(cause["field"], cause["reason"]) for cause in refusal["details"]["causes"]}


async def test_all_problems_are_told_at_once(space: Space, name: str) -> None:
    wrong = pod(
        name, labels={"a b": "x"}, spec={"restartPolicy": "Sometimes", "containers": [{"name": "", "image": ""}]}
    )
    refusal = (await space.create("pods", wrong)).refused(422, "Invalid")
    assert problems(refusal) == {
        ("metadata.labels", INVALID),
        ("spec.restartPolicy", UNSUPPORTED),
        ("spec.containers[0].name", REQUIRED),
        ("spec.containers[0].image", REQUIRED),
    }


async def fields_of_refused_change(space: Space, resource: str, name: str, change: Object) -> Sequence[str]:
    refusal = (await space.patch(resource, name, change)).refused(422, "Invalid")
    return sorted({cause["field"] for cause in refusal["details"]["causes"]})


def service(name: str, **spec: str) -> Object:
    ports = [{"port": 80, "protocol": "TCP"}]
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"ports": ports, **spec}}


async def test_a_service_keeps_its_address(space: Space, name: str, version: Version) -> None:
    made = (await space.create("services", service(name))).ok(201)
    address = made["spec"]["clusterIP"]
    head, _, last = address.rpartition(".")
    other = {"spec": {"clusterIP": f"{head}.{(int(last) + 1) % 250}"}}
    assert await fields_of_refused_change(space, "services", name, other) == ["spec.clusterIPs[0]"]
    without = service(name)
    without["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"]
    without["metadata"]["labels"] = {"a": "b"}
    answer = await space.replace("services", without)
    if version > (1, 20):
        assert answer.ok(200)["metadata"]["labels"] == {"a": "b"}
    else:
        # It takes a replacement without an address for the wish to have none.
        assert problems(answer.refused(422, "Invalid")) == {("spec.clusterIPs[0]", INVALID)}
    kept = (await space.get("services", name)).ok(200)["spec"]
    assert (kept["clusterIP"], kept["clusterIPs"]) == (address, [address])
