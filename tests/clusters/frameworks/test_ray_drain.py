"""Ray's hook when other nodes end meanwhile, with a stand-in for Ray; what it saves is seen with Ray itself (test_ray_for_real.py)."""

import importlib
import sys
from types import ModuleType
from typing import Any

import pytest

NODE, OTHER = "aa", "bb"
OTHER_ADDRESS = "10.0.0.8"


class RpcError(Exception):
    """Of a node that does not answer."""


class Cluster:
    """This node and another one, which is still listed and may have ended."""

    has_ended = False

    def nodes(self) -> list[dict[str, Any]]:
        listed = {NODE: "10.0.0.7", OTHER: OTHER_ADDRESS}
        return [
            {"Alive": True, "NodeID": node, "NodeManagerAddress": address, "NodeManagerPort": 1, "Resources": {}}
            for node, address in listed.items()
        ]

    def stats(self, address: str, *_: object) -> Any:
        assert address == OTHER_ADDRESS, "what this node owns goes with it"
        if self.has_ended:
            raise RpcError
        stats = ModuleType("stats")
        vars(stats)["core_workers_stats"] = []
        return stats

    def get_draining_nodes(self, timeout: float) -> list[str]:
        return []


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def program(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Any:
    modules: dict[str, dict[str, Any]] = {
        "grpc": {"RpcError": RpcError},
        "ray": {"nodes": cluster.nodes, "remote": lambda **_: lambda function: function},
        "ray._private": {},
        "ray._private.internal_api": {"node_stats": cluster.stats},
        "ray._private.serialization": {"_object_ref_deserializer": None},
        "ray._raylet": {"GcsClient": None, "NodeID": None},
        "ray.core": {},
        "ray.core.generated": {"autoscaler_pb2": None, "common_pb2": None},
    }
    for name, contents in modules.items():
        module = ModuleType(name)
        vars(module).update(contents)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setenv("POD_IP", "10.0.0.7")
    monkeypatch.delitem(sys.modules, "grid.clusters.frameworks.ray_drain", raising=False)
    program = importlib.import_module("grid.clusters.frameworks.ray_drain")
    monkeypatch.delitem(sys.modules, program.__name__)
    return program


def test_node_that_ends_while_asked_does_not_end_drain(program: Any, cluster: Cluster) -> None:
    cluster.has_ended = True
    assert program.handed_over(cluster, NODE, 0.0) is False, "its objects are unknown, so nothing is said to be safe"
    cluster.has_ended = False
    assert program.handed_over(cluster, NODE, 0.0) is True
