"""What is kept of a pod that the proxy may lead to, and which pods an execution has."""

import gc
import sys
from typing import Any

from dashboard.proxy.pods import Entrance, Entrances
from grid.core.labels import KEYS
from grid.kube.objects import RawObject
from grid.kube.store import Store
from tests.support.builders import decode, pod

_MOST_BYTES = 600  # of one pod


def entrance(name: str, execution: str, **fields: Any) -> RawObject:
    return pod(name, labels={KEYS.execution: execution, "team": "x" * 60}, phase="Running", node="n1", **fields)


def bytes_of(thing: object, seen: set[int]) -> int:
    """What an object takes with all that it holds, without what all of its kind share."""
    if id(thing) in seen or isinstance(thing, type):
        return 0
    seen.add(id(thing))
    held = [getattr(thing, name) for name in getattr(thing, "__struct_fields__", ())] or gc.get_referents(thing)
    return sys.getsizeof(thing) + sum(bytes_of(each, seen) for each in held)


def test_little_is_kept_of_a_large_pod() -> None:
    spec = {"containers": [{"name": "run", "image": "i" * 100, "args": ["x" * 15_000]}], "nodeSelector": {"a": "b"}}
    shared: set[int] = set()
    bytes_of(decode(entrance("another", "xyz"), Entrance), shared)
    assert bytes_of(decode(entrance("mine", "abc", spec=spec), Entrance), shared) < _MOST_BYTES


def test_pods_of_an_execution_follow_the_store() -> None:
    entrances, store = Entrances(), Store[Entrance]("pods")
    store.subscribe(entrances.take)
    for name, execution in (("head", "abc"), ("worker", "abc"), ("other", "xyz"), ("nobodys", "")):
        store.apply(decode(entrance(name, execution), Entrance))
    assert [each.key for each in entrances.of("abc")] == ["compute-grid/head", "compute-grid/worker"]
    assert entrances.of("") == entrances.of("unknown") == ()
    store.apply(decode(entrance("head", "abc", resourceVersion="9"), Entrance))
    assert [each.resource_version for each in entrances.of("abc") if each.key == "compute-grid/head"] == ["9"]
    for name in ("head", "worker"):
        store.discard(f"compute-grid/{name}")
    assert entrances.of("abc") == ()
    assert [each.key for each in entrances.of("xyz")] == ["compute-grid/other"]
