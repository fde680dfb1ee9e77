"""`/stats/summary` and `/metrics/resource`: the usage of a node and its pods, in a kubelet's two formats. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from grid.sandbox.client import Object, format_time
from grid.sandbox.kubelet.runtime import ContainerStats, PodIdentity


@dataclass(frozen=True, slots=True)
class ContainerUsage:
    name: str
    started_at: datetime
    usage: ContainerStats
    image: str = ""


@dataclass(frozen=True, slots=True)
class PodUsage:
    pod: PodIdentity
    started_at: datetime
    containers: Sequence[ContainerUsage] = field(default_factory=tuple)


def summary(node_name: str, pods: Sequence[PodUsage], *, node_started: datetime, now: datetime) -> Object:
    """Return the kubelet's summary; a node's usage is the sum of its pods', as all nodes share the machine."""
    everything = [item.usage for pod in pods for item in pod.containers]
    return {
        "node": {"nodeName": node_name, "startTime": format_time(node_started), **_resources(everything, now)},
        "pods": [
            {
                "podRef": {"name": pod.pod.name, "namespace": pod.pod.namespace, "uid": pod.pod.uid},
                "startTime": format_time(pod.started_at),
                "containers": [
                    {
                        "name": item.name,
                        "startTime": format_time(item.started_at),
                        **_resources([item.usage], item.usage.at),
                    }
                    for item in pod.containers
                ],
                **_resources([item.usage for item in pod.containers], now),
            }
            for pod in pods
        ],
    }


def _resources(usages: Iterable[ContainerStats], at: datetime) -> Object:
    usages = list(usages)
    memory = sum(usage.memory_bytes for usage in usages)
    return {
        "cpu": {
            "time": format_time(at),
            "usageNanoCores": sum(usage.cpu_nanocores for usage in usages),
            "usageCoreNanoSeconds": sum(usage.cpu_nanoseconds for usage in usages),
        },
        "memory": {"time": format_time(at), "usageBytes": memory, "workingSetBytes": memory, "rssBytes": memory},
    }


def metrics(pods: Sequence[PodUsage], now: datetime) -> str:
    """Return the usage as metrics-server scrapes it, in Prometheus' text format."""
    everything = [item.usage for pod in pods for item in pod.containers]
    lines = [
        "# TYPE node_cpu_usage_seconds_total counter",
        _sample("node_cpu_usage_seconds_total", "", sum(u.cpu_nanoseconds for u in everything) / 1e9, now),
        "# TYPE node_memory_working_set_bytes gauge",
        _sample("node_memory_working_set_bytes", "", sum(u.memory_bytes for u in everything), now),
        "# TYPE container_cpu_usage_seconds_total counter",
    ]
    lines += [
        _sample(
            "container_cpu_usage_seconds_total", _labels(pod, item), item.usage.cpu_nanoseconds / 1e9, item.usage.at
        )
        for pod in pods
        for item in pod.containers
    ]
    lines.append("# TYPE container_memory_working_set_bytes gauge")
    lines += [
        _sample("container_memory_working_set_bytes", _labels(pod, item), item.usage.memory_bytes, item.usage.at)
        for pod in pods
        for item in pod.containers
    ]
    lines.append("# TYPE container_start_time_seconds gauge")
    lines += [
        _sample("container_start_time_seconds", _labels(pod, item), item.started_at.timestamp(), item.usage.at)
        for pod in pods
        for item in pod.containers
    ]
    return "\n".join(lines) + "\n"


def _labels(pod: PodUsage, item: ContainerUsage) -> str:
    return f'{{container="{item.name}",namespace="{pod.pod.namespace}",pod="{pod.pod.name}"}}'


def _sample(name: str, labels: str, value: float, at: datetime) -> str:
    return f"{name}{labels} {value!r} {int(at.timestamp() * 1000)}"
