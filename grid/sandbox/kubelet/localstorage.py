"""What a pod has written to its node, and whether that is more than it may: limits of emptyDir volumes and of ephemeral storage.

Counted are the directories of its containers (their files and logs) and its emptyDir volumes on disk; not the volumes of claims, and
not /dev/shm. Rules and words are those of Kubernetes' eviction manager.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from grid.quantity import whole
from grid.sandbox.client import Object

_RESOURCE = "ephemeral-storage"


def is_limited(pod: Object) -> bool:
    return bool(_volume_limits(pod)) or any(_limit(container) for container in pod["spec"]["containers"])


def excess(pod: Object, directory: Path) -> str:
    """Why the pod is evicted; "" while it keeps within its limits. Walks its files, so not for the event loop."""
    volumes = {name: _size_of(directory / "volumes" / name) for name in _on_disk(pod)}
    for name, limit in _volume_limits(pod).items():
        if volumes[name] > whole(limit):
            return f'Usage of EmptyDir volume "{name}" exceeds the limit "{limit}". '
    containers = pod["spec"]["containers"]
    used = {str(one["name"]): _size_of(directory / "containers" / str(one["name"])) for one in containers}
    limits = {str(one["name"]): limit for one in containers if (limit := _limit(one))}
    total = sum(whole(limit) for limit in limits.values())
    if len(limits) == len(containers) and sum(volumes.values()) + sum(used.values()) > total:
        written = next(iter(limits.values())) if len(limits) == 1 else str(total)
        return f"Pod ephemeral local storage usage exceeds the total limit of containers {written}. "
    for name, limit in limits.items():
        if used[name] > whole(limit):
            return f'Container {name} exceeded its local ephemeral storage limit "{limit}". '
    return ""


def _limit(container: Object) -> str:
    return str(((container.get("resources") or {}).get("limits") or {}).get(_RESOURCE) or "")


def _on_disk(pod: Object) -> Iterator[str]:
    for volume in pod["spec"].get("volumes") or ():
        if "emptyDir" in volume and (volume["emptyDir"] or {}).get("medium") != "Memory":
            yield str(volume["name"])


def _volume_limits(pod: Object) -> dict[str, str]:
    names = set(_on_disk(pod))
    return {
        str(volume["name"]): str(volume["emptyDir"]["sizeLimit"])
        for volume in pod["spec"].get("volumes") or ()
        if volume["name"] in names and (volume["emptyDir"] or {}).get("sizeLimit")
    }


def _size_of(directory: Path) -> int:
    """Of the blocks that its files take, so that a sparse file counts as what is written of it. What goes meanwhile does not count."""
    total, unread = 0, [str(directory)]
    while unread:
        with contextlib.suppress(OSError), os.scandir(unread.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        unread.append(entry.path)
    return total
