"""Puts hardware tiers and node pools into words, for the list of tiers and a tier's form; pure."""

from collections.abc import Iterable

from dashboard.shell.viewmodels.format import cores_words, memory_words
from dashboard.shell.viewmodels.live import ViewModel
from dashboard.usage.viewmodels.usage import price_words
from grid.core.quantity import format_bytes, is_gpu, millicores, whole
from grid.core.translation import gettext as _
from grid.core.wording import listed, plural
from grid.diagnosis.nodeshapes import PoolShapes
from grid.models import HardwareTier
from grid.models.environment import KIND_WORDS


class TierWords(ViewModel, frozen=True, gc=False):
    """A tier's sizes in words. `limits` are those above the requests, `kinds` what may run on it, `warm` its warm-up hours."""

    cores: str
    memory: str
    shared_memory: str
    per_core: str
    gpus: str
    limits: str
    price: str
    kinds: str
    warm: str


class PoolWords(ViewModel, frozen=True, gc=False):
    name: str
    size: str


def tier_words(tier: HardwareTier, warm: str = "") -> TierWords:
    kinds = (
        KIND_WORDS[kind].plural if kind in KIND_WORDS else _("{framework} clusters", framework=kind.capitalize())
        for kind in tier.kinds
    )
    return TierWords(
        cores=cores_words(tier.cores),
        memory=memory_words(tier.memory),
        shared_memory=memory_words(tier.shared_memory) if tier.shared_memory else "",
        per_core=_per_core(tier.cores, tier.memory),
        gpus=plural(tier.gpus, "GPU", "GPUs") if tier.gpus else "",
        limits=_limits(tier),
        price=price_words(tier.cost_per_hour),
        warm=warm,
        kinds=", ".join(kinds),
    )


def pool_words(pools: Iterable[PoolShapes]) -> list[PoolWords]:
    """Return each pool with the size of its largest node, so that an admin can size a tier to fit."""
    return [PoolWords(pool.name, _pool_size(pool)) for pool in pools]


def _limits(tier: HardwareTier) -> str:
    disk = _("{size} of disk", size=memory_words(tier.ephemeral_storage))
    above = []
    if tier.effective_cores_limit != tier.cores:
        above.append(cores_words(tier.effective_cores_limit))
    if tier.effective_memory_limit != tier.memory:
        above.append(memory_words(tier.effective_memory_limit))
    if not above:
        return _("same as request; {disk}", disk=disk)
    return _("up to {above}, if the node has room; {disk}", above=listed(above), disk=disk)


def _per_core(cores: str, memory: str) -> str:
    try:
        return format_bytes(whole(memory) * 1000 // millicores(cores))
    except (ValueError, ZeroDivisionError):
        return ""


def _pool_size(pool: PoolShapes) -> str:
    shapes = (pool.next,) if pool.next is not None else pool.shapes
    if not shapes:
        return _("no node now, at most {maximum}", maximum=pool.maximum)
    gpu_names = sorted({name for shape in shapes for name in shape.allocatable if is_gpu(name)})
    sizes = {tuple(shape.allocatable.get(name, 0) for name in ("cpu", "memory", *gpu_names)) for shape in shapes}
    milli, memory, *gpus = max(sizes)
    words = [cores_words(f"{milli}m"), format_bytes(memory)]
    words += [plural(count, f"GPU {name}", f"GPUs {name}") for name, count in zip(gpu_names, gpus, strict=True)]
    size = ", ".join(words)
    if pool.next is not None:
        known = {"maximum": pool.maximum, "seen": pool.seen, "size": size}
        return _("no node now, at most {maximum}; when last seen on {seen}: {size}", **known)
    count = sum(shape.nodes + shape.away for shape in shapes)
    nodes = plural(count, "node", "nodes")
    if len(sizes) > 1:
        return _("{nodes}, the largest {size}", nodes=nodes, size=size)
    return _("{nodes}, each {size}", nodes=nodes, size=size) if count > 1 else f"{nodes}, {size}"
