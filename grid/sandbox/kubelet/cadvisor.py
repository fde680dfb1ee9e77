"""`/metrics/cadvisor`: the usage of containers in cAdvisor's names, as far as it is measured of processes.

There is no control group: so nothing here tells of throttling or pressure, and all processes share the machine's network, so nothing tells
whose bytes went over it. What is not measured is left out; a number that is made up would be believed.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from grid.sandbox.exposition import Family, Sample, text_of
from grid.sandbox.kubelet.runtime import ContainerStats
from grid.sandbox.kubelet.summary import PodUsage

_Read = Callable[[ContainerStats], float | None]


@dataclass(frozen=True, slots=True)
class DiskUsage:
    """Bytes of the machine's file system that holds the volumes, which all nodes share."""

    used: int
    size: int


def disk_usage(place: Path) -> DiskUsage | None:
    """Return how full the file system of this place is, or will be once it is made; None when that cannot be known."""
    existing = next((path for path in (place, *place.parents) if path.exists()), place)
    try:
        stats = os.statvfs(existing)
    except OSError:
        return None
    # As `df` counts: what only root may write is no room.
    used = (stats.f_blocks - stats.f_bfree) * stats.f_frsize
    return DiskUsage(used, used + stats.f_bavail * stats.f_frsize)


def cadvisor(pods: Sequence[PodUsage], disk: DiskUsage | None = None) -> str:
    """Return each container's use, each pod's as its sum (with an empty `container`), and the node's as that of all (`id="/"`)."""
    families = [
        _family("cpu_usage_seconds_total", "counter", "CPU time.", pods, lambda stats: stats.cpu_nanoseconds / 1e9),
        _family("memory_working_set_bytes", "gauge", "Resident memory.", pods, lambda stats: stats.memory_bytes),
        _family("memory_rss", "gauge", "Resident memory.", pods, lambda stats: stats.memory_bytes),
        _family("fs_reads_bytes_total", "counter", "Bytes read from disks.", pods, lambda stats: stats.read_bytes),
        _family("fs_writes_bytes_total", "counter", "Bytes written to disks.", pods, lambda stats: stats.written_bytes),
        Family("container_fs_usage_bytes", "gauge", "Bytes used of the file system.", _of_disk(disk, "used")),
        Family("container_fs_limit_bytes", "gauge", "Bytes of the file system.", _of_disk(disk, "size")),
        Family("container_start_time_seconds", "gauge", "Start since 1970.", _starts(pods)),
    ]
    return text_of(families)


def _family(name: str, kind: str, description: str, pods: Sequence[PodUsage], read: _Read) -> Family:
    return Family(f"container_{name}", kind, description, _samples(pods, read))


def _samples(pods: Sequence[PodUsage], read: _Read) -> Iterator[Sample]:
    everything: list[float] = []
    for pod in pods:
        known = [(item, value) for item in pod.containers if (value := read(item.usage)) is not None]
        for item, value in known:
            yield _of(pod, item.name, item.image), value
        if known:
            yield _of(pod), sum(value for _, value in known)
        everything += (value for _, value in known)
    # An idle node uses nothing, which is known; one of whose containers nothing can be read is not.
    if everything or not any(pod.containers for pod in pods):
        yield {"container": "", "id": "/", "image": "", "namespace": "", "pod": ""}, sum(everything)


def _of_disk(disk: DiskUsage | None, part: Literal["used", "size"]) -> Iterator[Sample]:
    if disk is not None:
        labels = {"container": "", "device": "/dev/root", "id": "/", "image": "", "namespace": "", "pod": ""}
        yield labels, getattr(disk, part)


def _starts(pods: Sequence[PodUsage]) -> Iterator[Sample]:
    for pod in pods:
        for item in pod.containers:
            yield _of(pod, item.name, item.image), item.started_at.timestamp()


def _of(pod: PodUsage, container: str = "", image: str = "") -> dict[str, str]:
    place = f"/kubepods/pod{pod.pod.uid}" + (f"/{container}" if container else "")
    return {"container": container, "id": place, "image": image, "namespace": pod.pod.namespace, "pod": pod.pod.name}
