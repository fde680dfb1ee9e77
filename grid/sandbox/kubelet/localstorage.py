"""A pod's usage of its node's disk, compared with its limits of emptyDir volumes and of ephemeral storage.

The directories of its containers (their files and logs) and its emptyDir volumes on disk count; the volumes of claims and /dev/shm
do not. Rules and messages are those of Kubernetes' eviction manager.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from grid.core.quantity import whole
from grid.sandbox.client import Object

_RESOURCE = "ephemeral-storage"


def is_limited(pod: Object) -> bool:
    return bool(_volume_limits(pod)) or any(_limit(container) for container in pod["spec"]["containers"])


def excess(pod: Object, directory: Path) -> str:
    """Return why the pod is evicted, or "" while it keeps within its limits. Slow: it walks the pod's files."""
    volumes = {name: _size_of(directory / "volumes" / name) for name in _on_disk(pod)}
    for name, limit in _volume_limits(pod).items():
        if volumes[name] > whole(limit):
            return f'Usage of EmptyDir volume "{name}" exceeds the limit "{limit}". '
    containers = pod["spec"]["containers"]
    used = {
        str(container["name"]): _size_of(directory / "containers" / str(container["name"])) for container in containers
    }
    limits = {str(container["name"]): limit for container in containers if (limit := _limit(container))}
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
    """Return the bytes of the blocks that the files use, so that sparse files count as written. Files that vanish are ignored."""
    total, unread = 0, [str(directory)]
    while unread:
        with contextlib.suppress(OSError), os.scandir(unread.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        unread.append(entry.path)
    return total
