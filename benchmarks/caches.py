"""Decoding 5,000 pods and storing them: our caches against the official client's models, on the same bytes in the same run.

    .venv/bin/python -m benchmarks.caches [PODS]

Only the ratios mean anything; the seconds are this machine's. "Bytes to store" is what a reflector does with each page;
"longest block" is how long one page keeps the event loop from everything else.
"""

import json
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import msgspec
from kubernetes.client import ApiClient

from grid.kube.decoding import Codec
from grid.kube.objects import Pod, RawObject
from grid.kube.store import Store
from tests.support.builders import condition, container_status, pod

PAGE = 500
ROUNDS = 5


def _containers(pod_name: str, number: int) -> list[RawObject]:
    resources = {"cpu": "500m", "memory": "512Mi"}
    return [
        {
            "name": each,
            "image": f"registry.example.org/compute-grid/{each}:2026.3",
            "command": ["/opt/grid/bin/start", "--port", "8888", "--base-url", "/"],
            "env": [{"name": f"GRID_VARIABLE_{i}", "value": f"value {i} of {pod_name}"} for i in range(2)],
            "resources": {"requests": resources, "limits": resources},
            "volumeMounts": [{"name": "project", "mountPath": "/mnt/project"}, {"name": "tmp", "mountPath": "/tmp"}],
            "readinessProbe": {"tcpSocket": {"port": 8888}, "periodSeconds": 5, "failureThreshold": 3},
            "terminationMessagePath": "/dev/termination-log",
            "imagePullPolicy": "IfNotPresent",
            "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        }
        for each in ("run", "nginx", "executor")
    ]


def realistic_pod(number: int) -> RawObject:
    """What an API server sends for a run pod: three containers, probes, volumes, tolerations and managed fields; about 4.7 kB."""
    name = f"workspace-{number:010d}"
    containers = _containers(name, number)
    fields: RawObject = {
        f"f:{key}": {} for key in ("containers", "dnsPolicy", "nodeSelector", "restartPolicy", "volumes")
    }
    made = pod(
        name,
        node=f"node-{number % 200}",
        phase="Running",
        ready=True,
        labels={
            "app.kubernetes.io/name": "workspace",
            "app.kubernetes.io/managed-by": "compute-grid",
            "dominodatalab.com/execution-id": f"{number:010d}",
            "dominodatalab.com/hardware-tier-id": "small",
            "dominodatalab.com/project-id": f"project-{number % 40}",
        },
        containers=containers,
        statuses=[container_status(each["name"], ready=True) for each in containers],
        conditions=[condition(kind, "True") for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")],
        spec={
            "volumes": [
                {"name": "project", "persistentVolumeClaim": {"claimName": "p"}},
                {"name": "tmp", "emptyDir": {}},
            ],
            "tolerations": [
                {
                    "key": f"node.kubernetes.io/{key}",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                }
                for key in ("not-ready", "unreachable")
            ],
            "schedulerName": "default-scheduler",
        },
        status={
            "podIP": "127.64.0.7",
            "hostIP": "127.32.0.1",
            "startTime": "2026-03-04T09:00:01Z",
            "qosClass": "Guaranteed",
        },
        resourceVersion=str(1000 + number),
        managedFields=[
            {
                "manager": manager,
                "operation": "Update",
                "apiVersion": "v1",
                "fieldsV1": {"f:spec": fields, "f:status": fields},
            }
            for manager in ("compute-grid", "kubelet")
        ],
    )
    return {key: value for key, value in made.items() if key not in ("apiVersion", "kind")}


def pages(count: int) -> list[bytes]:
    """The list as the API server would send it."""
    items = [realistic_pod(number) for number in range(count)]
    return [
        msgspec.json.encode(
            {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items[i : i + PAGE]}
        )
        for i in range(0, count, PAGE)
    ]


def to_store(bodies: list[bytes], store: Store[Pod] | None = None) -> Store[Pod]:
    """As `Reflector` does it; into a new store unless one is given."""
    codec = Codec(Pod)
    store = store or Store[Pod]("pods", indexes={"node": lambda pod: pod.spec.node_name})
    for body in bodies:
        for chunk in codec.page(body).chunks:
            for item in chunk:
                store.apply(item)
    return store


def to_models(bodies: list[bytes]) -> dict[str, object]:
    client = ApiClient()
    pods = {}
    for body in bodies:
        decoded: Any = client.deserialize(body.decode(), "V1PodList", "application/json")
        for item in decoded.items:
            pods[f"{item.metadata.namespace}/{item.metadata.name}"] = item
    return pods


def to_dicts(bodies: list[bytes]) -> dict[str, object]:
    pods = {}
    for body in bodies:
        for item in json.loads(body)["items"]:
            pods[f"{item['metadata']['namespace']}/{item['metadata']['name']}"] = item
    return pods


def best(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Seconds of the fastest round: the one that the rest of the machine disturbed least."""
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


def memory(work: Callable[[], object]) -> int:
    """Bytes that stay allocated while the result is held."""
    tracemalloc.start()
    held = work()
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    del held
    return size


def say(line: str) -> None:
    sys.stdout.write(line + "\n")


def main(count: int) -> None:
    bodies = pages(count)
    say(f"{count} pods, {sum(map(len, bodies)) / count / 1000:.1f} kB each, pages of {PAGE}")
    ours = best(lambda: to_store(bodies))
    store = to_store(bodies)
    again = best(lambda: to_store(bodies, store))
    block = best(lambda: to_store(bodies[:1]))
    plain = best(lambda: to_dicts(bodies))
    models = best(lambda: to_models(bodies), rounds=2)
    say(f"bytes to store, first list     {ours:8.3f} s     1.0 x")
    say(f"bytes to store, nothing new    {again:8.3f} s   {again / ours:5.1f} x")
    say(f"json.loads to dicts            {plain:8.3f} s   {plain / ours:5.1f} x")
    say(f"official client's models       {models:8.3f} s   {models / ours:5.1f} x")
    say(f"longest block of the loop      {block:8.3f} s   (one page)")
    mine, theirs = memory(lambda: to_store(bodies)), memory(lambda: to_models(bodies))
    say(
        f"memory: ours {mine / count / 1000:.1f} kB a pod, models {theirs / count / 1000:.1f} kB, {theirs / mine:.1f} x"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5000)
