"""CPU contention on a node: whether its CPU is used up, which pods use more than they requested, and which get too little; pure.

A node's measurements come one after the other, and `advance` takes them in. A measurement is often reported again before there is a
newer one, so only pods with a newer timestamp than before count. Contention begins after several rounds in a row near the
CPU that pods can use, and ends after several clearly below it, so that nothing flaps in between.

Between pods that want more the kernel shares a node's CPU in proportion to their requests (CPU shares). So a pod that gets clearly less
for each core that it requested than another one does not want more; it has nothing to do, or no more threads. A pod without a request
gets what the others leave, and takes nothing from them. Where the kernel's pressure stall information is known, the time for which a pod
waits for CPU decides. A pod at its own CPU limit is throttled by that, and by no neighbour.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from grid.core.quantity import format_cores
from grid.core.translation import gettext as _, ngettext
from grid.core.wording import listed_up_to
from grid.diagnosis.requests import pod_requests
from grid.diagnosis.resources import core_words, resource_amount
from grid.kube.objects import Pod

ROUNDS = 4  # in a row, a minute at least: a shorter peak harms nobody
BUSY_PERCENT, CALM_PERCENT = 95, 85  # of what pods can use: contention begins at the one, and ends below the other
LIMIT_PERCENT = 95  # of a CPU limit: use is measured as an average, so a throttled pod stays a little below
STILL_PERCENT = 90  # of its request: a pod that was short of CPU stays so until it uses less
EVEN_PERCENT, STILL_EVEN_PERCENT = 75, 50  # of what others use for each core requested: shares are even on average only
WAITING_PERCENT, STILL_WAITING_PERCENT = 25, 15  # of the time, by pressure stall information
SMALL_PERCENT = 5  # of the same: a smaller overuse is nobody's trouble
CLOCK_SECONDS = 300.0
NAMED = 3


class PodSample(NamedTuple):
    """One measurement of a pod, in millicores; `measured_at` in seconds since 1970. `limit` is None for a pod without a CPU limit,
    `waiting` the percentage of the time for which it waits for CPU, None where that is unknown. Pods of one `group` are no neighbours of
    one another."""

    key: str
    group: str
    used: int
    requested: int
    limit: int | None
    measured_at: float
    waiting: float | None = None


Role = Literal["offender", "victim", ""]


@dataclass(frozen=True, slots=True)
class PodCpu:
    """The CPU of a pod on a contended node, averaged over the last rounds, in millicores; `could_use` is its limit or the whole node."""

    key: str
    group: str
    used: int
    requested: int
    could_use: int
    role: Role = ""

    @property
    def overuse(self) -> int:
        return max(0, self.used - self.requested)


@dataclass(frozen=True, slots=True)
class NodeRounds:
    """What is remembered of a node between two rounds. `uses` holds the last `ROUNDS` measurements of each pod that is there, the oldest
    first; `since` and `until` are the first and the last round of the present contention, in which `pods` are what was found."""

    busy: int = 0
    calm: int = 0
    is_contended: bool = False
    since: float = 0.0
    until: float = 0.0
    measured_at: Mapping[str, float] = field(default_factory=dict)
    uses: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    pods: Sequence[PodCpu] = ()


@dataclass(frozen=True, slots=True)
class Contention:
    """A node whose CPU is used up while pods seem to want more than they get. Offenders come first, the largest overuse before the others,
    then the victims; `cores` is what pods can use, in millicores."""

    node: str
    cores: int
    used: int
    since: float
    until: float
    pods: Sequence[PodCpu]

    @property
    def offenders(self) -> Sequence[PodCpu]:
        return [pod for pod in self.pods if pod.role == "offender"]

    @property
    def victims(self) -> Sequence[PodCpu]:
        return [pod for pod in self.pods if pod.role == "victim"]

    @property
    def score(self) -> int:
        """How bad it is: the overuse of its offenders, times the pods that they harm."""
        return sum(pod.overuse for pod in self.offenders) * len(self.victims)


def pod_sample(pod: Pod, used: int, measured_at: float, *, group: str, waiting: float | None) -> PodSample:
    """Return the measurement with what the pod requests. Where the pod has no limit of its own the largest of its containers counts: only
    the pod's sum is measured, and the one that does the work is rather at its limit than not."""
    of_pod, of_containers = pod.spec.resources, [each.resources for each in pod.spec.containers]
    texts = [each.limits.get("cpu", "") for each in ([of_pod] if "cpu" in of_pod.limits else of_containers)]
    limits = [resource_amount("cpu", text) for text in texts if text]
    limit = max(limits, default=0) or None
    return PodSample(pod.metadata.key, group, used, pod_requests(pod).cpu, limit, measured_at, waiting)


def advance(before: NodeRounds, cores: int, samples: Collection[PodSample]) -> NodeRounds:
    """Take a round of measurements in, of all pods on the node. Return `before` while most of the node's use was only reported again."""
    if cores <= 0:
        return NodeRounds()
    # Two metrics servers may answer in turn, so an older measurement is no other one, unless a clock was set.
    seen = {sample.key: before.measured_at.get(sample.key, 0.0) for sample in samples}
    ages = [(each, seen[each.key] - each.measured_at) for each in samples]
    fresh = [each for each, age in ages if age < 0 or (age > CLOCK_SECONDS and each.measured_at > 0)]
    used = sum(max(0, sample.used) for sample in samples)
    if not fresh or 2 * sum(max(0, sample.used) for sample in fresh) < used:
        return before
    is_busy, is_calm = _reaches(used, BUSY_PERCENT, cores), not _reaches(used, CALM_PERCENT, cores)
    busy, calm = before.busy + 1 if is_busy else 0, before.calm + 1 if is_calm else 0
    is_contended = calm < ROUNDS if before.is_contended else busy >= ROUNDS
    at = max(sample.measured_at for sample in fresh)
    uses = {sample.key: before.uses.get(sample.key, ()) for sample in samples}
    uses |= {sample.key: (*uses[sample.key], max(0, sample.used))[-ROUNDS:] for sample in fresh}
    after = NodeRounds(
        busy=min(busy, ROUNDS),
        calm=min(calm, ROUNDS),
        is_contended=is_contended,
        since=before.since if before.is_contended or busy > 1 else at,
        until=at,
        measured_at={sample.key: sample.measured_at for sample in samples},
        uses=uses,
    )
    short = {pod.key for pod in before.pods if pod.role == "victim"}
    return replace(after, pods=tuple(_pods(uses, cores, samples, short))) if is_contended else after


def contention(rounds: NodeRounds, node: str, cores: int) -> Contention | None:
    """Return what there is to say of the node; None while its CPU suffices, or nobody is known to get too little."""
    if not any(pod.role == "victim" for pod in rounds.pods):
        return None
    order = {"offender": 0, "victim": 1, "": 2}
    pods = sorted(rounds.pods, key=lambda pod: (order[pod.role], -pod.overuse, -pod.used, pod.key))
    return Contention(node, cores, sum(pod.used for pod in pods), rounds.since, rounds.until, pods)


def _pods(
    uses: Mapping[str, Sequence[int]], cores: int, samples: Collection[PodSample], short: Collection[str]
) -> list[PodCpu]:
    """Return the pods with their roles; nobody has one unless somebody gets too little. `short` are the victims of the last round."""
    averages = {key: round(sum(each) / len(each)) for key, each in uses.items() if each}
    used = {sample.key: averages.get(sample.key, max(0, sample.used)) for sample in samples}
    known = [sample for sample in samples if len(uses[sample.key]) >= ROUNDS]
    overuse = {sample.key: used[sample.key] - sample.requested for sample in known}
    small = max(SMALL_PERCENT * cores / 100, 1)
    least = max(max((overuse[sample.key] for sample in known if sample.requested > 0), default=0) / 2, small)
    offenders = {sample.key: sample.group for sample in known if sample.requested > 0 and overuse[sample.key] >= least}
    groups = set(offenders.values())
    share = max((_share(sample, used[sample.key]) for sample in known if overuse[sample.key] >= small), default=0.0)
    victims = {
        sample.key
        for sample in known
        if sample.key not in offenders
        and groups - {sample.group}
        and _gets_too_little(sample, used[sample.key], cores, least, share, was_short=sample.key in short)
    }

    def role(key: str) -> Role:
        return "victim" if key in victims else "offender" if victims and key in offenders else ""

    return [
        PodCpu(each.key, each.group, used[each.key], each.requested, _could_use(each, cores), role(each.key))
        for each in samples
    ]


def _could_use(sample: PodSample, cores: int) -> int:
    return cores if sample.limit is None else min(sample.limit, cores)


def _share(sample: PodSample, used: int) -> float:
    return used / sample.requested if sample.requested > 0 else math.inf


def _gets_too_little(
    sample: PodSample, used: int, cores: int, offence: float, share: float, *, was_short: bool
) -> bool:
    """Return whether the pod seems to want more than it gets. `offence` is the least overuse of an offender: a pod near it has no role, so
    none is a victim now and an offender a moment later. `share` is the largest of a pod with a notable overuse. A pod that was short of
    CPU stays so until that is clearly over."""
    if sample.requested <= 0 or _reaches(used, LIMIT_PERCENT, _could_use(sample, cores)):
        return False
    if used - sample.requested >= (offence if was_short else offence / 2):
        return False
    if sample.waiting is not None:
        return sample.waiting >= (STILL_WAITING_PERCENT if was_short else WAITING_PERCENT)
    is_even = 100 * _share(sample, used) >= (STILL_EVEN_PERCENT if was_short else EVEN_PERCENT) * share
    return is_even and _reaches(used, STILL_PERCENT if was_short else 100, sample.requested)


def _reaches(value: int, percent: int, whole: int) -> bool:
    return value * 100 >= percent * whole


# --- In words ---


def for_operators(contention: Contention, name_of: Callable[[PodCpu], str]) -> str:
    """Return who uses the node's CPU and who gets too little, with what an operator can do."""
    used = _("{used} of {cores}", used=format_cores(contention.used), cores=core_words(contention.cores))
    first, *others = contention.offenders
    overuse = format_cores(first.overuse)
    more = _("{used}, {overuse} more than it requested", used=core_words(first.used), overuse=overuse)
    also = ""
    if others:
        also = ngettext(
            " {names} also uses more than it requested.",
            " {names} also use more than they requested.",
            len(others),
            names=listed_up_to(NAMED, [name_of(pod) for pod in others]),
        )
    victims = [name_of(pod) for pod in contention.victims]
    harmed = ngettext(
        "{names} may get less than it could use.",
        "{names} may get less than they could use.",
        len(victims),
        names=listed_up_to(NAMED, victims),
    )
    sentence = _(
        "Its pods use {used}. {first} uses {more}.{also} {harmed} "
        "To prevent this, set a CPU limit on the tier of pods above their request, or a larger request on the tier of the others."
    )
    return sentence.format(used=used, first=name_of(first), more=more, also=also, harmed=harmed)


def for_owner(victim: PodCpu, kind: str) -> str:
    """Return what the owner of a pod that gets too little CPU is told: nothing that says who else is on the node."""
    uses = _("one of its pods uses") if kind == "cluster" else _("it uses")
    again = _("Stop it and resume it") if kind == "workspace" else _("Launch it again")
    used, could_use, requested = format_cores(victim.used), core_words(victim.could_use), format_cores(victim.requested)
    sentence = _(
        "Other pods on its node use more CPU than they requested, so it may run slower: {uses} {used} of the {could_use} "
        "that it may use, and requested {requested}. {again} on a tier with a larger request to be sure of more."
    )
    return sentence.format(uses=uses, used=used, could_use=could_use, requested=requested, again=again)
