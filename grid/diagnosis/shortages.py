"""Phantom shortages: a namespace that refuses pods although nodes, slots and tiers have room for them. Pure.

Compares the ResourceQuotas and LimitRanges of the executions' namespace with the pods of a launch before it happens, and with what tiers
and slots promise. A quota whose scopes cannot be compared with our pods is left out: it may or may not count them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from grid.kube.limits import LimitItem, LimitRange, ResourceQuota
from grid.quantity import format_bytes, format_cores, millicores, whole
from grid.wording import plural

# Our pods have requests and no deadline, so quotas with these scopes count them; those with any other may not.
_OUR_SCOPES = frozenset({"NotTerminating", "NotBestEffort"})
_COUNTED = ("pods", "count/pods")
_COMPUTE = frozenset({"cpu", "memory", "ephemeral-storage"})


@dataclass(frozen=True, slots=True)
class NamespaceLimits:
    """What limits the namespace, as read a moment ago."""

    quotas: tuple[ResourceQuota, ...] = ()
    ranges: tuple[LimitRange, ...] = ()


@dataclass(frozen=True, slots=True)
class ContainerNeeds:
    """A container beside the program: its requests and limits as written."""

    name: str
    requests: Mapping[str, str]
    limits: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PodNeeds:
    """Equal pods: the program's requests and limits as written, how many pods there are, and what is in each beside the program."""

    name: str
    requests: Mapping[str, str]
    limits: Mapping[str, str]
    count: int = 1
    beside: tuple[ContainerNeeds, ...] = ()

    def whole(self) -> "PodNeeds":
        """Return the pods as if all were one container. What the program does not say, as a limit, the pod does not."""
        if not self.beside:
            return self
        requests = _total(self.requests, [one.requests for one in self.beside])
        return replace(
            self, requests=requests, limits=_total(self.limits, [one.limits for one in self.beside]), beside=()
        )


@dataclass(frozen=True, slots=True)
class NamespaceRefusal:
    """Why the namespace would refuse pods; `for_good` when it would even if nothing else ran in it."""

    sentence: str
    for_good: bool = False


@dataclass(frozen=True, slots=True)
class TierPromise:
    """A tier as it is offered: one pod of it, and how many may run at once (None: as many as users have slots)."""

    id: str
    pod: PodNeeds
    maximum: int | None = None


@dataclass(frozen=True, slots=True)
class Phantom:
    """A promise that the namespace does not keep. `tier` is the id of the tier that is concerned, "" for the slots of users."""

    tier: str
    sentence: str
    advice: str = field(default="Ask an admin of the cluster to raise it, or lower what is promised.")


def refusal(pods: Sequence[PodNeeds], limits: NamespaceLimits) -> NamespaceRefusal | None:
    """Return why the namespace would refuse these pods now, a lasting reason first; None when nothing is known that would."""
    return min(_refusals(pods, limits), key=lambda one: not one.for_good, default=None)


def warnings(pods: Sequence[PodNeeds], limits: NamespaceLimits) -> list[str]:
    """Return what is nearly used up: less is left than these pods would take once more."""
    found = []
    for quota, name, hard, used, need in _compared(pods, limits):
        if need <= hard - used < 2 * need:
            found.append(
                f"{_of(quota)} has {_left(name, hard, used)} left: enough for this, and not for another like it."
            )
    return found


def phantoms(tiers: Iterable[TierPromise], slots_per_user: int, limits: NamespaceLimits) -> list[Phantom]:
    """Return the promises that the namespace could not keep even if nothing ran in it."""
    found = []
    for quota in _counting(limits.quotas):
        for name in _COUNTED:
            hard = _amount(name, quota.status.hard[name]) if name in quota.status.hard else None
            if hard is not None and hard < slots_per_user:
                allowed = f"{_of(quota, 'the')} allows {plural(hard, 'pod')} in all"
                found.append(Phantom("", f"One user may hold {plural(slots_per_user, 'slot')}, but {allowed}."))
    for tier in tiers:
        broken = next(_never(tier.pod, limits), "") or next(_too_many(tier, limits), "")
        if broken:
            found.append(Phantom(tier.id, broken))
    return found


def spent(name: str, hard: str, used: str, asked: str) -> str:
    """Return how much of one resource of a quota is used, as "10 of 10 pods are in use and this takes 1 pod"."""
    limit, taken, more = _amount(name, hard), _amount(name, used), _amount(name, asked)
    number = f"{taken:,}" if name in _COUNTED else _words(name, taken).removesuffix(f" ({name})")
    return f"{number} of {_words(name, limit)} are in use and this takes {_words(name, more)}"


def is_more(name: str, asked: str, hard: str) -> bool:
    """Return whether one pod asks for more of a quota's resource than there is in all."""
    return _amount(name, asked) > _amount(name, hard)


def needed(pod: PodNeeds) -> dict[str, int]:
    """Return what the pods take of a quota, by the quota's names of resources."""
    pod, found = pod.whole(), dict.fromkeys(_COUNTED, 1)
    for resource, text in pod.requests.items():
        found[f"requests.{resource}"] = _amount(resource, text)
        if resource in _COMPUTE:
            found[resource] = _amount(resource, text)
    found |= {f"limits.{resource}": _amount(resource, text) for resource, text in pod.limits.items()}
    return {name: amount * pod.count for name, amount in found.items()}


def _refusals(pods: Sequence[PodNeeds], limits: NamespaceLimits) -> Iterator[NamespaceRefusal]:
    for pod in pods:
        yield from (NamespaceRefusal(sentence, for_good=True) for sentence in _never(pod, limits))
    for quota, name, hard, used, need in _compared(pods, limits):
        if need > hard - used:
            sentence = f"{_of(quota)} has {_left(name, hard, used)} left, and this takes {_words(name, need)}."
            yield NamespaceRefusal(sentence, for_good=need > hard)


def _compared(pods: Sequence[PodNeeds], limits: NamespaceLimits) -> Iterator[tuple[ResourceQuota, str, int, int, int]]:
    """Yield each resource that a quota limits: its hard limit, what is used, and what the pods need together."""
    total: dict[str, int] = {}
    for pod in pods:
        for name, amount in needed(pod).items():
            total[name] = total.get(name, 0) + amount
    for quota in _counting(limits.quotas):
        for name, text in quota.status.hard.items():
            if total.get(name):
                yield quota, name, _amount(name, text), _amount(name, quota.status.used.get(name, "0")), total[name]


def _never(pod: PodNeeds, limits: NamespaceLimits) -> Iterator[str]:
    """Yield why one such pod is refused, whatever else runs."""
    for range_ in limits.ranges:
        for item in range_.spec.limits:
            judged: dict[str, tuple[PodNeeds | ContainerNeeds, ...]]
            judged = {"Container": (pod, *pod.beside), "Pod": (pod.whole(),)}
            for one in judged.get(item.type, ()):
                yield from (f"The limit range “{range_.metadata.name}” {part}" for part in _outside(one, item))
    single = needed(replace(pod, count=1))
    for quota in _counting(limits.quotas):
        for name, text in quota.status.hard.items():
            hard, kind = _amount(name, text), name.rpartition(".")[2]
            if single.get(name, 0) > hard:
                yield f"{_of(quota)} allows {_words(name, hard)} in all, and {pod.name} takes {_words(name, single[name])}."
            elif name not in single and kind in _COMPUTE and not _is_defaulted(name, limits):
                yield f"{_of(quota)} takes only pods that say their {name}, and {pod.name} does not."


def _too_many(tier: TierPromise, limits: NamespaceLimits) -> Iterator[str]:
    """Yield why the tier's maximum is never reached."""
    if not tier.maximum:
        return
    each = needed(tier.pod)
    for quota in _counting(limits.quotas):
        for name, text in quota.status.hard.items():
            fits = _amount(name, text) // each[name] if each.get(name) else tier.maximum
            if fits < tier.maximum:
                yield (
                    f"It may run {tier.maximum:,} at once, but {_of(quota, 'the')} has {_words(name, _amount(name, text))} in all, "
                    f"enough for {fits:,}."
                )


def _total(own: Mapping[str, str], beside: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return quantities of the program with those beside it added."""
    found = {}
    for name, text in own.items():
        total = _amount(name, text) + sum(_amount(name, one.get(name, "0")) for one in beside)
        found[name] = f"{total}m" if name == "cpu" else str(total)
    return found


def _outside(pod: PodNeeds | ContainerNeeds, item: LimitItem) -> Iterator[str]:
    what = "a container" if item.type == "Container" else "a pod"
    for name, text in item.max.items():
        has = pod.limits.get(name) or pod.requests.get(name)
        if has and _amount(name, has) > _amount(name, text):
            bound, taken = _words(name, _amount(name, text)), _words(name, _amount(name, has))
            yield f"allows {what} at most {bound}, and {pod.name} takes up to {taken}."
    for name, text in item.min.items():
        has = pod.requests.get(name)
        if has and _amount(name, has) < _amount(name, text):
            bound, taken = _words(name, _amount(name, text)), _words(name, _amount(name, has))
            yield f"asks {what} for at least {bound}, and {pod.name} requests {taken}."
    for name, text in item.max_limit_request_ratio.items():
        requested, limit = _amount(name, pod.requests.get(name, "0")), _amount(name, pod.limits.get(name, "0"))
        # The ratio is itself a quantity; in thousandths, so that 1.5 is exact.
        if requested and limit * 1000 > requested * millicores(text):
            most = format_cores(millicores(text))
            yield f"allows a limit of {name} of at most {most} times the request, and that of {pod.name} is larger."


def _is_defaulted(name: str, limits: NamespaceLimits) -> bool:
    """Return whether a limit range fills in what a pod leaves out."""
    kind, _, resource = name.rpartition(".")
    for range_ in limits.ranges:
        for item in range_.spec.limits:
            filled = item.default if kind == "limits" else {**item.default, **item.default_request}
            if item.type == "Container" and resource in filled:
                return True
    return False


def _counting(quotas: Iterable[ResourceQuota]) -> list[ResourceQuota]:
    return [one for one in quotas if one.spec.scope_selector is None and _OUR_SCOPES.issuperset(one.spec.scopes)]


def _of(quota: ResourceQuota, article: str = "The") -> str:
    return f"{article} quota “{quota.metadata.name}” of the namespace"


def _left(name: str, hard: int, used: int) -> str:
    """Return for example "4 of 10 pods" or "2 of 16 cores (requests.cpu)"."""
    left = max(0, hard - used)
    if name in _COUNTED:
        return f"{left:,} of {plural(hard, 'pod')}"
    number = format_cores(left) if name.rpartition(".")[2] == "cpu" else _words(name, left).removesuffix(f" ({name})")
    return f"{number} of {_words(name, hard)}"


def _words(name: str, amount: int) -> str:
    """Return an amount with the unit and the quota's own name of the resource."""
    kind = name.rpartition(".")[2] if not name.startswith(("requests.", "limits.")) else name.partition(".")[2]
    if name in _COUNTED:
        return plural(amount, "pod")
    if kind == "cpu":
        words = f"{format_cores(amount)} {'core' if amount == 1000 else 'cores'}"
    elif kind in ("memory", "ephemeral-storage"):
        words = format_bytes(amount)
    elif kind.endswith("/gpu"):
        words = plural(amount, "GPU")
    else:
        words = f"{amount:,}"
    if name == "cpu":
        return words
    return f"{words} of memory" if name == "memory" else f"{words} ({name})"


def _amount(name: str, text: str) -> int:
    try:
        return millicores(text) if name in ("cpu", "requests.cpu", "limits.cpu") else whole(text)
    except ValueError:
        return 0
