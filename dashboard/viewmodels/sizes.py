"""Amounts of cores, memory and GPUs in words; pure."""

from grid.quantity import format_bytes, format_cores, millicores, whole
from grid.wording import plural


def size_words(millicores: int, memory_bytes: int, gpus: int, shared_memory: str = "") -> str:
    """Return for example "3.5 cores, 14 GiB memory, 1 GPU"."""
    parts = [cores_words(f"{millicores}m"), f"{format_bytes(memory_bytes)} memory"]
    if gpus:
        parts.append(plural(gpus, "GPU"))
    if shared_memory:
        parts.append(f"{memory_words(shared_memory)} shared memory")
    return ", ".join(parts)


def cores_words(cores: str) -> str:
    try:
        milli = millicores(cores)
    except ValueError:
        return cores
    return f"{format_cores(milli)} {'core' if milli == 1000 else 'cores'}"


def memory_words(memory: str) -> str:
    try:
        return format_bytes(whole(memory))
    except ValueError:
        return memory
