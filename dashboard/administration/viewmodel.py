"""Puts into words what admins edit: tiers as table rows, pools, settings, and old and new values in the history; pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Protocol

from dashboard.shell.viewmodels.sizes import cores_words, memory_words
from dashboard.usage.viewmodels.prices import price_number, price_words
from grid.core.quantity import format_bytes, millicores, whole
from grid.core.translation import gettext as _
from grid.core.translation import ngettext
from grid.core.wording import listed, plural
from grid.diagnosis.nodeshapes import PoolShapes

_SPANS = ((24 * 60 * 60, "d"), (60 * 60, "h"), (60, "min"))
_GPU_SUFFIX = "/gpu"
_KINDS = {
    "workspace": _("workspaces"),
    "job": _("jobs"),
    "app": _("apps"),
    "cluster": _("clusters"),
}  # all others are frameworks
_PRICES = frozenset({"cost_per_hour"})  # stored as text with all decimal places


class TierLike(Protocol):
    """The part of `grid.models.HardwareTier` that is used here."""

    @property
    def node_pool(self) -> str: ...
    @property
    def cores(self) -> str: ...
    @property
    def memory(self) -> str: ...
    @property
    def gpus(self) -> int: ...
    @property
    def gpu_resource(self) -> str: ...
    @property
    def effective_cores_limit(self) -> str: ...
    @property
    def effective_memory_limit(self) -> str: ...
    @property
    def shared_memory(self) -> str: ...
    @property
    def ephemeral_storage(self) -> str: ...
    @property
    def cost_per_hour(self) -> Decimal: ...
    @property
    def kinds(self) -> Sequence[str]: ...


class EntryLike(Protocol):
    """A stored entry of the audit log."""

    @property
    def pk(self) -> Any: ...
    @property
    def at(self) -> datetime: ...
    @property
    def actor_name(self) -> str: ...
    @property
    def action(self) -> str: ...
    @property
    def object_id(self) -> str: ...
    @property
    def object_name(self) -> str: ...
    @property
    def changes(self) -> Any: ...
    def get_action_display(self) -> str: ...


@dataclass(frozen=True, slots=True)
class TierWords:
    """A tier's sizes in words. `limits` is a sentence about limits above the requests, `kinds` lists what may run on the tier, `warm`
    tells of its warm-up hours."""

    cores: str
    memory: str
    shared_memory: str
    per_core: str
    gpus: str
    limits: str
    price: str
    kinds: str
    warm: str


@dataclass(frozen=True, slots=True)
class PeopleWords:
    """The members of a project: its owner, and all others in one text."""

    owner: str
    others: str


def people_words(members: Iterable[tuple[str, str]]) -> PeopleWords:
    """Return the members in words from their names and roles; viewers come last and are marked as such."""
    by_role: dict[str, list[str]] = {"owner": [], "contributor": [], "viewer": []}
    for name, role in members:
        by_role[role].append(name)
    viewers = [_("{name} (viewer)", name=name) for name in sorted(by_role["viewer"])]
    others = [*sorted(by_role["contributor"]), *viewers]
    return PeopleWords("".join(by_role["owner"]), ", ".join(others) or _("nobody else"))


@dataclass(frozen=True, slots=True)
class PoolWords:
    name: str
    size: str


@dataclass(frozen=True, slots=True)
class FieldChange:
    """The change of one field. For a list only the removed and added entries are given, and `old` and `new` are empty."""

    label: str
    old: str = ""
    new: str = ""
    removed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HistoryLine:
    entry_id: Any
    at: datetime
    who: str
    action: str
    object_id: str
    object_name: str
    changes: tuple[FieldChange, ...]
    is_new: bool
    can_be_taken_back: bool


def tier_words(tier: TierLike, warm: str = "") -> TierWords:
    return TierWords(
        cores=cores_words(tier.cores),
        memory=memory_words(tier.memory),
        shared_memory=memory_words(tier.shared_memory) if tier.shared_memory else "",
        per_core=_per_core(tier.cores, tier.memory),
        gpus=plural(tier.gpus, "GPU", "GPUs") if tier.gpus else "",
        limits=_limits(tier),
        price=price_words(tier.cost_per_hour),
        warm=warm,
        kinds=", ".join(
            _KINDS.get(kind, _("{framework} clusters", framework=kind.capitalize())) for kind in tier.kinds
        ),
    )


def pool_words(pools: Iterable[PoolShapes]) -> list[PoolWords]:
    """Return each pool with the size of its largest node, so that an admin can size a tier to fit."""
    return [PoolWords(pool.name, _pool_size(pool)) for pool in pools]


def in_use_sentence(count: int) -> str:
    """Return a sentence about the active executions that use the object; "" without any."""
    if not count:
        return ""
    return ngettext(
        "{count:,} active execution uses it. It keeps the values that it was launched with; changes apply to new launches.",
        "{count:,} active executions use it. They keep the values that they were launched with; changes apply to new launches.",
        count,
    )


def history_lines(entries: Iterable[EntryLike], labels: Mapping[str, str], *, is_reversible: bool) -> list[HistoryLine]:
    """Return the entries in words; `labels` are the form's labels by field name."""
    return [
        HistoryLine(
            entry_id=entry.pk,
            at=entry.at,
            who=entry.actor_name,
            action=entry.get_action_display(),
            object_id=entry.object_id,
            object_name=entry.object_name,
            changes=()
            if entry.action == "created"
            else tuple(_change(name, labels.get(name, name), old, new) for name, (old, new) in entry.changes.items()),
            is_new=entry.action == "created",
            can_be_taken_back=is_reversible and entry.action != "created",
        )
        for entry in entries
    ]


def amount(value: int, unit: str) -> str:
    """Return for example "25 slots"; seconds are also given in larger units: "5400 seconds (1 h 30 min)"."""
    return _with_span(f"{value} {unit}", value, unit)


def number(value: int, unit: str) -> str:
    """Return the same without the unit: "25", "5400 (1 h 30 min)"."""
    return _with_span(str(value), value, unit)


def _with_span(text: str, value: int, unit: str) -> str:
    span = _span(value) if unit == "seconds" else ""
    return f"{text} ({span})" if span else text


def _span(seconds: int) -> str:
    """Return the exact time in larger units, such as "1 h 30 min"; "" when seconds would be left over."""
    parts = []
    for size, unit in _SPANS:
        if seconds >= size:
            parts.append(f"{seconds // size} {unit}")
            seconds %= size
    return " ".join(parts) if not seconds else ""


def _limits(tier: TierLike) -> str:
    disk = _("{size} of disk", size=memory_words(tier.ephemeral_storage))
    above = []
    if tier.effective_cores_limit != tier.cores:
        above.append(cores_words(tier.effective_cores_limit))
    if tier.effective_memory_limit != tier.memory:
        above.append(memory_words(tier.effective_memory_limit))
    return (
        _("up to {above}, if the node has room; {disk}", above=listed(above), disk=disk)
        if above
        else _("same as request; {disk}", disk=disk)
    )


def _per_core(cores: str, memory: str) -> str:
    try:
        return format_bytes(whole(memory) * 1000 // millicores(cores))
    except (ValueError, ZeroDivisionError):
        return ""


def _pool_size(pool: PoolShapes) -> str:
    shapes = (pool.next,) if pool.next is not None else pool.shapes
    if not shapes:
        return _("no node now, at most {maximum}", maximum=pool.maximum)
    gpu_names = sorted({name for shape in shapes for name in shape.allocatable if name.endswith(_GPU_SUFFIX)})
    sizes = {tuple(shape.allocatable.get(name, 0) for name in ("cpu", "memory", *gpu_names)) for shape in shapes}
    milli, memory, *gpus = max(sizes)
    words = [cores_words(f"{milli}m"), format_bytes(memory)]
    words += [plural(count, f"GPU {name}", f"GPUs {name}") for name, count in zip(gpu_names, gpus, strict=True)]
    size = ", ".join(words)
    if pool.next is not None:
        return _(
            "no node now, at most {maximum}; when last seen on {seen}: {size}",
            maximum=pool.maximum,
            seen=pool.seen,
            size=size,
        )
    count = sum(shape.nodes + shape.away for shape in shapes)
    nodes = plural(count, "node", "nodes")
    if len(sizes) > 1:
        return _("{nodes}, the largest {size}", nodes=nodes, size=size)
    return _("{nodes}, each {size}", nodes=nodes, size=size) if count > 1 else f"{nodes}, {size}"


def _change(name: str, label: str, old: Any, new: Any) -> FieldChange:
    if name in _PRICES:
        return FieldChange(label, _price_word(old), _price_word(new))
    before, after = _lines(old), _lines(new)
    if before is None or after is None:
        return FieldChange(label, _word(old), _word(new))
    removed = tuple(line for line in before if line not in after)
    added = tuple(line for line in after if line not in before)
    if not removed and not added:
        return FieldChange(label, ", ".join(before), ", ".join(after))
    return FieldChange(label, removed=removed, added=added)


def _lines(value: Any) -> list[str] | None:
    """Return the entries of a list or mapping as texts; None for any other value."""
    if isinstance(value, dict):
        return [f"{name}={text}" for name, text in sorted(value.items())]
    if isinstance(value, list):
        return [" ".join(map(str, one.values())) if isinstance(one, dict) else str(one) for one in value]
    return None


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    return _("empty") if value is None or value == "" else str(value)


def _price_word(value: Any) -> str:
    try:
        return price_number(Decimal(str(value)))
    except InvalidOperation:
        return _word(value)
