"""EndpointSlices say where the pods of a Service are, and cost only when these change."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from grid.sandbox.client import ENDPOINT_SLICES, PODS, SERVICES, Api, Object, name_of
from grid.sandbox.controllers.endpointrules import match, slices
from grid.sandbox.controllers.endpointslices import EndpointsController
from tests.sandbox.support import FastClock, api_server, make_pod, running
from tests.support.waiting import eventually


def a_service(**spec: Any) -> Object:
    metadata = {"name": "web", "namespace": "default", "uid": "s", "labels": {"team": "blue"}}
    ports = [{"name": "http", "port": 80, "targetPort": "http", "protocol": "TCP"}]
    return {"metadata": metadata, "spec": {"selector": {"app": "web"}, "ports": ports, **spec}}


def a_pod(number: int, *, ready: bool = True, port: int = 8080, ending: bool = False, phase: str = "Running") -> Object:
    pod = make_pod(f"web-{number:03}", nodeName="node-0")
    pod["metadata"] |= {"uid": f"uid-{number}", "labels": {"app": "web"}}
    if ending:
        pod["metadata"]["deletionTimestamp"] = "2026-11-24T04:00:00Z"
    pod["spec"]["containers"][0]["ports"] = [{"name": "http", "containerPort": port}]
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    pod["status"] = {"phase": phase, "podIP": f"127.0.1.{number}", "conditions": [condition]}
    return pod


def test_endpoint_slice_has_conditions_of_each_pod() -> None:
    pods = [a_pod(1), a_pod(2, ready=False), a_pod(3, ending=True), a_pod(4, phase="Succeeded")]
    [made] = slices(a_service(), pods)
    assert [tuple(item["conditions"].values()) for item in made["endpoints"]] == [
        (True, True, False),
        (False, False, False),
        (False, True, True),
    ]
    assert made["endpoints"][0]["targetRef"] == {
        "kind": "Pod",
        "namespace": "default",
        "name": "web-001",
        "uid": "uid-1",
    }
    assert (made["endpoints"][0]["nodeName"], made["endpoints"][0]["addresses"]) == ("node-0", ["127.0.1.1"])
    assert made["ports"] == [{"name": "http", "protocol": "TCP", "port": 8080}]
    assert made["metadata"]["labels"] == {
        "team": "blue",
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    }
    published = slices(a_service(publishNotReadyAddresses=True, clusterIP="None"), pods)[0]
    assert all(item["conditions"]["ready"] for item in published["endpoints"])
    assert published["metadata"]["labels"]["service.kubernetes.io/headless"] == ""


def test_endpoint_slice_is_limited_and_has_single_port_set() -> None:
    assert [len(made["endpoints"]) for made in slices(a_service(), [a_pod(number) for number in range(250)])] == [
        100,
        100,
        50,
    ]
    assert [made["ports"][0]["port"] for made in slices(a_service(), [a_pod(1), a_pod(2, port=9090)])] == [8080, 9090]
    [empty] = slices(a_service(), [])
    assert (empty["endpoints"], empty["ports"]) == ([], [])


def test_only_the_slice_that_changes_is_written() -> None:
    before = slices(a_service(), [a_pod(number) for number in range(150)])
    after = slices(a_service(), [a_pod(number, ready=number != 120) for number in range(150)])
    changed, new, left = match(after, before)
    assert [len(old["endpoints"]) for old, _ in changed] == [50]
    assert (new, left) == ([], [])
    assert match(before, before) == ([], [], [])
    changed, new, left = match(slices(a_service(), []), before)
    assert (len(changed) + len(new), len(left)) == (1, 2 - len(changed))


async def run_pod(client: Api, number: int, **labels: str) -> None:
    pod = a_pod(number)
    made = make_pod(name_of(pod), nodeName="node-0")
    made["metadata"]["labels"] = labels
    made["spec"]["containers"] = pod["spec"]["containers"]
    created = await client.create(PODS.path("default"), made)
    await client.update(PODS.path("default", name_of(pod), "status"), {**created, "status": pod["status"]})


async def test_slices_follow_the_pods_and_go_with_their_service(tmp_path: Path) -> None:
    clock = FastClock()
    async with api_server(tmp_path, clock) as client:
        controller = EndpointsController(client, clock=clock)
        async with running(controller):
            existing = controller._mirrors.of(ENDPOINT_SLICES)
            service = {"apiVersion": "v1", "kind": "Service", **a_service()}
            del service["metadata"]["uid"]
            await client.create(SERVICES.path("default"), service)
            await eventually(lambda: len(existing.values()) == 1, "an empty slice")
            await run_pod(client, 1, app="web")
            await eventually(lambda: addresses(existing.values()) == ["127.0.1.1"], "the pod is in the slice")
            before = list(existing.values())
            for number in range(2, 12):
                await run_pod(client, number, app="other")
            await eventually(lambda: len(controller._mirrors.of(PODS).values()) == 11, "all pods are seen")
            await clock.sleep(0.3)
            assert list(existing.values()) == before, "other pods change nothing"
            await client.delete(PODS.path("default", "web-001"), grace_seconds=0)
            await eventually(lambda: addresses(existing.values()) == [], "the pod has left the slice")
            await client.delete(SERVICES.path("default", "web"))
            await eventually(lambda: not existing.values(), "the slice is gone")


def addresses(existing: Iterable[Object]) -> list[str]:
    return [
        address for item in existing for endpoint in item.get("endpoints") or () for address in endpoint["addresses"]
    ]
