"""Phantom shortages: a namespace that refuses pods although nodes, slots and tiers have room for them. Pure.

Compares the ResourceQuotas and LimitRanges of the executions' namespace with the pods of a launch before it happens, and with what tiers
and slots promise. A quota whose scopes cannot be compared with our pods is left out: it may or may not count them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from grid.core.quantity import format_cores, millicores
from grid.core.translation import gettext as _
from grid.core.wording import capitalised, plural
from grid.diagnosis.quotawords import COUNTED_PODS, quota_amount, quota_words
from grid.kube.limits import LimitItem, LimitRange, ResourceQuota

# Our pods have requests and no deadline, so quotas with these scopes count them; those with any other may not.
_OUR_SCOPES = frozenset({"NotTerminating", "NotBestEffort"})
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
    sidecars: tuple[ContainerNeeds, ...] = ()

    def whole(self) -> "PodNeeds":
        """Return the pods as if all were one container. What the program does not say, as a limit, the pod does not."""
        if not self.sidecars:
            return self
        requests = _total(self.requests, [container.requests for container in self.sidecars])
        limits = _total(self.limits, [container.limits for container in self.sidecars])
        return replace(self, requests=requests, limits=limits, sidecars=())


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
    advice: str = field(default=_("Ask an admin of the cluster to raise it, or lower what is promised."))


def refusal(pods: Sequence[PodNeeds], limits: NamespaceLimits) -> NamespaceRefusal | None:
    """Return why the namespace would refuse these pods now, a lasting reason first; None when nothing is known that would."""
    return min(_refusals(pods, limits), key=lambda reason: not reason.for_good, default=None)


def warnings(pods: Sequence[PodNeeds], limits: NamespaceLimits) -> list[str]:
    """Return what is nearly used up: less is left than these pods would take once more."""
    scarce = [
        (capitalised(_of(quota)), _left(name, hard, used))
        for quota, name, hard, used, need in _compared(pods, limits)
        if need <= hard - used < 2 * need
    ]
    sentence = _("{quota} has {left} left: enough for this, and not for another like it.")
    return [sentence.format(quota=quota, left=left) for quota, left in scarce]


def phantoms(tiers: Iterable[TierPromise], slots_per_user: int, limits: NamespaceLimits) -> list[Phantom]:
    """Return the promises that the namespace could not keep even if nothing ran in it."""
    broken_promises = []
    for quota in _counting(limits.quotas):
        for name in COUNTED_PODS:
            hard = quota_amount(name, quota.status.hard[name]) if name in quota.status.hard else None
            if hard is not None and hard < slots_per_user:
                allowed = _("{quota} allows {pods} in all", quota=_of(quota), pods=plural(hard, "pod", "pods"))
                slots = plural(slots_per_user, "slot", "slots")
                sentence = _("One user may hold {slots}, but {allowed}.", slots=slots, allowed=allowed)
                broken_promises.append(Phantom("", sentence))
    for tier in tiers:
        broken = next(_never(tier.pod, limits), "") or next(_too_many(tier, limits), "")
        if broken:
            broken_promises.append(Phantom(tier.id, broken))
    return broken_promises


def needed(pod: PodNeeds) -> dict[str, int]:
    """Return what the pods take of a quota, by the quota's names of resources."""
    pod, amounts = pod.whole(), dict.fromkeys(COUNTED_PODS, 1)
    for resource, text in pod.requests.items():
        amounts[f"requests.{resource}"] = quota_amount(resource, text)
        if resource in _COMPUTE:
            amounts[resource] = quota_amount(resource, text)
    amounts |= {f"limits.{resource}": quota_amount(resource, text) for resource, text in pod.limits.items()}
    return {name: amount * pod.count for name, amount in amounts.items()}


def _refusals(pods: Sequence[PodNeeds], limits: NamespaceLimits) -> Iterator[NamespaceRefusal]:
    for pod in pods:
        yield from (NamespaceRefusal(sentence, for_good=True) for sentence in _never(pod, limits))
    for quota, name, hard, used, need in _compared(pods, limits):
        if need > hard - used:
            left, takes = _left(name, hard, used), quota_words(name, need)
            sentence = _("{quota} has {left} left, and this takes {needed}.")
            sentence = sentence.format(quota=capitalised(_of(quota)), left=left, needed=takes)
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
                used = quota_amount(name, quota.status.used.get(name, "0"))
                yield quota, name, quota_amount(name, text), used, total[name]


def _never(pod: PodNeeds, limits: NamespaceLimits) -> Iterator[str]:
    for range_ in limits.ranges:
        for item in range_.spec.limits:
            judged: Mapping[str, Sequence[PodNeeds | ContainerNeeds]]
            judged = {"Container": (pod, *pod.sidecars), "Pod": (pod.whole(),)}
            for limited in judged.get(item.type, ()):
                yield from _outside(range_.metadata.name, limited, item)
    single = needed(replace(pod, count=1))
    for quota in _counting(limits.quotas):
        for name, text in quota.status.hard.items():
            hard, kind = quota_amount(name, text), name.rpartition(".")[2]
            what = capitalised(_of(quota))
            if single.get(name, 0) > hard:
                limit, takes = quota_words(name, hard), quota_words(name, single[name])
                sentence = _("{quota} allows {limit} in all, and {pod} takes {needed}.")
                yield sentence.format(quota=what, limit=limit, pod=pod.name, needed=takes)
            elif name not in single and kind in _COMPUTE and not _is_defaulted(name, limits):
                sentence = _("{quota} takes only pods that say their {resource}, and {pod} does not.")
                yield sentence.format(quota=what, resource=name, pod=pod.name)


def _too_many(tier: TierPromise, limits: NamespaceLimits) -> Iterator[str]:
    if not tier.maximum:
        return
    each = needed(tier.pod)
    for quota in _counting(limits.quotas):
        for name, text in quota.status.hard.items():
            fits = quota_amount(name, text) // each[name] if each.get(name) else tier.maximum
            if fits < tier.maximum:
                limit = quota_words(name, quota_amount(name, text))
                sentence = _("It may run {maximum:,} at once, but {quota} has {limit} in all, enough for {fits:,}.")
                yield sentence.format(maximum=tier.maximum, quota=_of(quota), limit=limit, fits=fits)


def _total(own: Mapping[str, str], others: Iterable[Mapping[str, str]]) -> dict[str, str]:
    totals = {}
    for name, text in own.items():
        total = quota_amount(name, text) + sum(quota_amount(name, other.get(name, "0")) for other in others)
        totals[name] = f"{total}m" if name == "cpu" else str(total)
    return totals


def _outside(limit_range: str, pod: PodNeeds | ContainerNeeds, item: LimitItem) -> Iterator[str]:
    what = _("a container") if item.type == "Container" else _("a pod")
    for name, text in item.max.items():
        has = pod.limits.get(name) or pod.requests.get(name)
        if has and quota_amount(name, has) > quota_amount(name, text):
            bound, taken = quota_words(name, quota_amount(name, text)), quota_words(name, quota_amount(name, has))
            sentence = _("The limit range “{limit_range}” allows {what} at most {bound}; {pod} takes up to {taken}.")
            yield sentence.format(limit_range=limit_range, what=what, bound=bound, pod=pod.name, taken=taken)
    for name, text in item.min.items():
        has = pod.requests.get(name)
        if has and quota_amount(name, has) < quota_amount(name, text):
            bound, taken = quota_words(name, quota_amount(name, text)), quota_words(name, quota_amount(name, has))
            sentence = _("The limit range “{limit_range}” asks {what} for at least {bound}; {pod} requests {taken}.")
            yield sentence.format(limit_range=limit_range, what=what, bound=bound, pod=pod.name, taken=taken)
    for name, text in item.max_limit_request_ratio.items():
        requested, limit = (quota_amount(name, each.get(name, "0")) for each in (pod.requests, pod.limits))
        # The ratio is itself a quantity; in thousandths, so that 1.5 is exact.
        if requested and limit * 1000 > requested * millicores(text):
            sentence = _(
                "The limit range “{limit_range}” allows a limit of {resource} of at most {most} times the request, "
                "and that of {pod} is larger."
            )
            most = format_cores(millicores(text))
            yield sentence.format(limit_range=limit_range, resource=name, most=most, pod=pod.name)


def _is_defaulted(name: str, limits: NamespaceLimits) -> bool:
    kind, _unused, resource = name.rpartition(".")
    items = (item for range_ in limits.ranges for item in range_.spec.limits if item.type == "Container")
    return any(resource in item.default or (kind != "limits" and resource in item.default_request) for item in items)


def _counting(quotas: Iterable[ResourceQuota]) -> list[ResourceQuota]:
    counting = (quota for quota in quotas if quota.spec.scope_selector is None)
    return [quota for quota in counting if _OUR_SCOPES.issuperset(quota.spec.scopes)]


def _of(quota: ResourceQuota) -> str:
    return _("the quota “{name}” of the namespace", name=quota.metadata.name)


def _left(name: str, hard: int, used: int) -> str:
    """Return for example "4 of 10 pods" or "2 of 16 cores (requests.cpu)"."""
    left = max(0, hard - used)
    if name in COUNTED_PODS:
        return _("{left:,} of {pods}", left=left, pods=plural(hard, "pod", "pods"))
    is_cpu = name.rpartition(".")[2] == "cpu"
    number = format_cores(left) if is_cpu else quota_words(name, left).removesuffix(f" ({name})")
    return _("{left} of {limit}", left=number, limit=quota_words(name, hard))
