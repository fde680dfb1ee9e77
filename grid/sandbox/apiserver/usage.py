"""metrics.k8s.io: usage of nodes and pods, made from the kubelets' summaries. Pure functions."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from grid.sandbox.apiserver.kinds import Object
from grid.sandbox.apiserver.registry import timestamp
from grid.sandbox.apiserver.store import Record

_WINDOW = "10s"


def node_metrics(nodes: Iterable[Record], stats: Mapping[str, Object], now: datetime) -> Iterator[Object]:
    """Yield the metrics of nodes whose usage is known."""
    for record in nodes:
        summary = stats.get(record.key, {}).get("node") or {}
        usage = _usage(summary)
        if usage is not None:
            yield {
                "kind": "NodeMetrics",
                "apiVersion": "metrics.k8s.io/v1beta1",
                "metadata": _metadata(record.obj, now),
                "timestamp": _measured_at(summary, now),
                "window": _WINDOW,
                "usage": usage,
            }


def pod_metrics(pods: Iterable[Record], stats: Mapping[str, Object], now: datetime) -> Iterator[Object]:
    """Yield the metrics of pods whose containers are all measured; the others would look smaller than they are."""
    measured: dict[str, list[Object]] = {}
    for summary in stats.values():
        for pod in summary.get("pods") or ():
            measured.setdefault(f"{pod['podRef']['namespace']}/{pod['podRef']['name']}", []).append(pod)
    for record in pods:
        # Asked by key first: reading the uid decodes the pod, which for 50,000 of them takes seconds.
        of_this_name = measured.get(record.key)
        if of_this_name is None:
            continue
        uid = record.obj["metadata"]["uid"]
        pod_stats = next((pod for pod in of_this_name if pod["podRef"].get("uid") == uid), None)
        if pod_stats is None or not pod_stats.get("containers"):
            continue
        containers = [{"name": each["name"], "usage": _usage(each)} for each in pod_stats["containers"]]
        if all(each["usage"] is not None for each in containers):
            yield {
                "kind": "PodMetrics",
                "apiVersion": "metrics.k8s.io/v1beta1",
                "metadata": _metadata(record.obj, now),
                "timestamp": _measured_at(pod_stats["containers"][0], now),
                "window": _WINDOW,
                "containers": containers,
            }


def _metadata(obj: Object, now: datetime) -> Object:
    given = obj["metadata"]
    metadata: Object = {"name": given["name"]}
    if "namespace" in given:
        metadata["namespace"] = given["namespace"]
    metadata["creationTimestamp"] = timestamp(now)
    if given.get("labels"):
        metadata["labels"] = given["labels"]
    return metadata


def _usage(summary: Object) -> dict[str, str] | None:
    cpu: Any = (summary.get("cpu") or {}).get("usageNanoCores")
    memory: Any = (summary.get("memory") or {}).get("workingSetBytes")
    if cpu is None or memory is None:
        return None
    return {"cpu": f"{int(cpu)}n", "memory": f"{int(memory) // 1024}Ki"}


def _measured_at(summary: Object, now: datetime) -> str:
    return str((summary.get("cpu") or {}).get("time") or timestamp(now))
