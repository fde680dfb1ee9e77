"""Drains one node of a Ray cluster, inside its container: no new work, running work ends, and objects that only this node has are copied.

Ray's own drain moves no object: those still needed would be computed again. So, when nothing runs any more, another node is told to fetch
them; when this one ends, their owners find the copies. Run by `ray_node.drain`. Uses Ray's internals, as they are in 2.60: nothing else
knows who owns what.
"""

import contextlib
import itertools
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

import grpc  # type: ignore[import-untyped]
import ray  # type: ignore[import-not-found]
from ray._private.internal_api import node_stats  # type: ignore[import-not-found]
from ray._raylet import GcsClient, NodeID  # type: ignore[import-not-found]
from ray.core.generated import autoscaler_pb2, common_pb2  # type: ignore[import-not-found]

_ALIVE = 0
_LOOK_SECONDS = 1.0
_RPC_SECONDS = 5
_IN_ONE_GO = 100
# Share of the drain time for copying objects while something still runs.
_FOR_OBJECTS = 0.25
_SMALLEST_SHARED = 100 * 1024  # bytes; smaller results are kept by their owners
_NO_ACTOR = b"\xff"


def drain(gcs: Any, node: str, head: str, deadline: float, began: float) -> bool:
    """Return True when nothing is lost: the node has ended by itself, or is idle and all its objects have copies elsewhere."""
    # The other reason, idleness, is refused by a node that is busy.
    reason = autoscaler_pb2.DrainNodeReason.Value("DRAIN_NODE_REASON_PREEMPTION")
    gcs.drain_node(node, reason, "The cluster shrinks.", int(deadline * 1000))
    time.sleep(_LOOK_SECONDS)
    if not _is_alive(gcs, node):
        return True
    address, temp = os.environ["POD_IP"], f"/tmp/ray-{os.environ['POD_IP']}"
    ray.init(address=head, _node_ip_address=address, _temp_dir=temp, log_to_driver=False, logging_level="ERROR")
    last_call = deadline - _FOR_OBJECTS * (deadline - began)
    quiet = 0
    while quiet < 2 and time.time() < last_call:  # twice: between two tasks, a worker seems to do nothing
        time.sleep(_LOOK_SECONDS)
        if not _is_alive(gcs, node):
            return True
        quiet = 0 if _is_working(node) else quiet + 1
    while True:
        # A node may have ended meanwhile, as when several end: the next try asks those left.
        with contextlib.suppress(grpc.RpcError):
            if hand_over(gcs, node, deadline):
                return not _is_working(node)
        if time.time() >= deadline:
            return False
        time.sleep(_LOOK_SECONDS)


def hand_over(gcs: Any, node: str, deadline: float) -> bool:
    owners = dict(_owned_objects())
    alone = _only_at(node, owners)
    targets = _targets(gcs, node)
    if not alone or not targets:
        return not alone
    batches = [alone[first : first + _IN_ONE_GO] for first in range(0, len(alone), _IN_ONE_GO)]
    copies = []
    for batch, target in zip(batches, itertools.cycle(targets), strict=False):
        there = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(target, soft=False)
        copies.append(fetch.options(scheduling_strategy=there).remote([(item, owners[item]) for item in batch]))
    ray.wait(copies, num_returns=len(copies), timeout=max(0.0, deadline - time.time()))
    return not _only_at(node, owners)


@ray.remote(num_cpus=0)  # type: ignore[untyped-decorator]
def fetch(items: list[tuple[bytes, bytes]]) -> None:
    """Fetch the objects; runs on the node that is to have the copies."""
    from ray._private.serialization import _object_ref_deserializer  # type: ignore[import-not-found]

    refs = [_object_ref_deserializer(item, "", owner, b"", None) for item, owner in items]
    ray.wait(refs, num_returns=len(refs), timeout=60, fetch_local=True)


def _owned_objects() -> Iterator[tuple[bytes, bytes]]:
    """Yield each finished shared object of the cluster with its owner's address; objects owned on this node end with it."""
    for row in ray.nodes():
        if not row["Alive"] or row["NodeManagerAddress"] == os.environ["POD_IP"]:
            continue
        for worker in node_stats(row["NodeManagerAddress"], row["NodeManagerPort"], True).core_workers_stats:
            owner = common_pb2.Address(
                node_id=bytes.fromhex(row["NodeID"]),
                ip_address=worker.ip_address,
                port=worker.port,
                worker_id=worker.worker_id,
            ).SerializeToString()
            for ref in worker.object_refs:
                if ref.task_status == common_pb2.FINISHED and not 0 <= ref.object_size < _SMALLEST_SHARED:
                    yield ref.object_id, owner


def _only_at(node: str, owners: dict[bytes, bytes]) -> list[bytes]:
    from ray._private.serialization import _object_ref_deserializer

    refs = [_object_ref_deserializer(item, "", owner, b"", None) for item, owner in owners.items()]
    places = ray.experimental.get_object_locations(refs, _RPC_SECONDS * 1000) if refs else {}
    return [ref.binary() for ref, place in places.items() if place["node_ids"] == [node]]


def _targets(gcs: Any, node: str) -> list[str]:
    """Return the nodes that stay: workers rather than the head, whose memory all share."""
    leaving = set(gcs.get_draining_nodes(timeout=_RPC_SECONDS))
    staying = [row for row in ray.nodes() if row["Alive"] and row["NodeID"] not in {node, *leaving}]
    workers = [row["NodeID"] for row in staying if row["Resources"].get("CPU")]
    return workers or [row["NodeID"] for row in staying]


def _is_working(node: str) -> bool:
    row = next((row for row in ray.nodes() if row["NodeID"] == node and row["Alive"]), None)
    if row is None:
        return False
    workers = node_stats(row["NodeManagerAddress"], row["NodeManagerPort"], False).core_workers_stats
    return any(
        worker.num_running_tasks or (worker.actor_id and worker.actor_id.strip(_NO_ACTOR))
        for worker in workers
        if worker.worker_type == common_pb2.WORKER
    )


def _is_alive(gcs: Any, node: str) -> bool:
    info = gcs.get_all_node_info(timeout=_RPC_SECONDS).get(NodeID.from_hex(node))
    return info is not None and info.state == _ALIVE


if __name__ == "__main__":
    to, seconds, itself = sys.argv[1:]
    now = time.time()
    sys.exit(0 if drain(GcsClient(address=to), itself, to, now + float(seconds), now) else 1)
