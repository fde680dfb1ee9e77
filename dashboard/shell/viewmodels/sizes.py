"""Amounts of cores, memory and GPUs in words; pure."""

from grid.core.quantity import format_bytes, format_cores, millicores, whole
from grid.core.translation import gettext as _
from grid.core.translation import ngettext
from grid.core.wording import plural


def size_words(millicores: int, memory_bytes: int, gpus: int, shared_memory: str = "") -> str:
    """Return for example "3.5 cores, 14 GiB memory, 1 GPU"."""
    parts = [cores_words(f"{millicores}m"), _("{size} memory", size=format_bytes(memory_bytes))]
    if gpus:
        parts.append(plural(gpus, "GPU", "GPUs"))
    if shared_memory:
        parts.append(_("{size} shared memory", size=memory_words(shared_memory)))
    return ", ".join(parts)


def cores_words(cores: str) -> str:
    try:
        milli = millicores(cores)
    except ValueError:
        return cores
    return ngettext("{cores} core", "{cores} cores", 1 if milli == 1000 else 2, cores=format_cores(milli))


def memory_words(memory: str) -> str:
    try:
        return format_bytes(whole(memory))
    except ValueError:
        return memory
