"""Which pods stand behind a Service."""

from typing import Any

import pytest

from grid.sandbox.client import Object
from grid.sandbox.serviceproxy.endpoints import Backend, backends_of, cluster_ip, target_port


def service(*ports: Object, **spec: Any) -> Object:
    return {
        "metadata": {"name": "head", "namespace": "default"},
        "spec": {
            "clusterIP": "10.96.3.7",
            "selector": {"app": "head"},
            "ports": list(ports) or [{"port": 8786}],
            **spec,
        },
    }


def pod(ip: str = "127.64.0.1", *, ready: str = "True", ending: bool = False, **fields: Any) -> Object:
    container = {"name": "run", "ports": [{"name": "comm", "containerPort": 9000}]}
    meta: Object = {"name": "p", "namespace": "default", "labels": {"app": "head", "x": "y"}}
    if ending:
        meta["deletionTimestamp"] = "2026-11-21T04:00:00Z"
    status = {"podIP": ip, "phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}
    return {
        "metadata": meta | fields.get("metadata", {}),
        "spec": {"containers": [container]} | fields.get("spec", {}),
        "status": status | fields.get("status", {}),
    }


def test_ready_pods_that_match_are_behind_every_port() -> None:
    ports = ({"port": 8786, "targetPort": 8786}, {"port": 80, "targetPort": "comm"}, {"port": 53, "protocol": "UDP"})
    assert backends_of(service(*ports), [pod("127.64.0.2"), pod("127.64.0.1")]) == {
        8786: [Backend("127.64.0.1", 8786), Backend("127.64.0.2", 8786)],
        80: [Backend("127.64.0.1", 9000), Backend("127.64.0.2", 9000)],
    }


@pytest.mark.parametrize(
    "other",
    [
        pod(ready="False"),
        pod(ending=True),
        pod(""),
        pod(status={"phase": "Succeeded"}),
        pod(metadata={"labels": {"app": "worker"}}),
        pod(metadata={"namespace": "elsewhere"}),
        pod(status={"conditions": []}),
    ],
    ids=["not ready", "ending", "no address", "over", "other labels", "other namespace", "never ready"],
)
def test_no_other_pod_is(other: Object) -> None:
    assert backends_of(service(), [other]) == {}


def test_service_may_include_pods_that_are_not_ready() -> None:
    wanted = service(publishNotReadyAddresses=True)
    pods = [pod("127.64.0.1", ready="False"), pod("127.64.0.2", status={"phase": "Failed"})]
    assert backends_of(wanted, pods) == {8786: [Backend("127.64.0.1", 8786)]}


@pytest.mark.parametrize(
    "spec", [{"clusterIP": "None"}, {"clusterIP": ""}, {"selector": {}}, {"selector": None}, {"type": "ExternalName"}]
)
def test_a_service_without_address_or_selector_is_not_forwarded(spec: Object) -> None:
    assert cluster_ip(service(**spec)) == ""
    assert backends_of(service(**spec), [pod()]) == {}


def test_named_target_port_is_resolved_in_each_pod() -> None:
    sidecar = {"name": "s", "restartPolicy": "Always", "ports": [{"name": "side", "containerPort": 1}]}
    once = {"name": "i", "ports": [{"name": "once", "containerPort": 2}]}
    udp = {"name": "u", "ports": [{"name": "udp", "containerPort": 3, "protocol": "UDP"}]}
    backend = pod(spec={"initContainers": [sidecar, once], "containers": [udp]})
    ports = [target_port({"port": 80, "targetPort": name}, backend) for name in ("side", "once", "udp", "comm", 7)]
    assert ports == [1, None, None, None, 7]
    assert target_port({"port": 80}, backend) == 80
