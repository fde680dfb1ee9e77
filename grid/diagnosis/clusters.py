"""Explains an on-demand cluster: how many of its workers are ready, what the others wait for, and what stands in its way.

Used by the cluster's page and by its history, so both say the same. Pure: the same pods, autoscaler and time give the same words.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Literal

from grid.core import pod_ranking
from grid.core.labels import POD_DELETION_COST
from grid.core.regexes import RepeatedExpression, escape
from grid.core.translation import gettext as _, ngettext
from grid.core.wording import plural
from grid.diagnosis.autoscalers import explain_autoscaler, loads
from grid.diagnosis.diagnosis import Diagnosis, quoted
from grid.diagnosis.requests import holds_a_node
from grid.diagnosis.scheduling import pool_growth, promised_size
from grid.diagnosis.startup import true_since
from grid.kube.objects import Autoscaler, Event, Pod, is_ready

Phase = Literal["ready", "start", "image", "volume", "node", "trouble", "ending"]

THRASHING_SPAN = timedelta(minutes=15)
THRASHING_TURNS = 3
FOLLOWING_SPAN = timedelta(minutes=1)
_OUT_OF_MEMORY = "OOMKilled"
_RESTARTED = "restarted"
_WEIGHT = ("problem", "wait", "ok")
_NUMBER = RepeatedExpression(r"\d+")


def _like(*texts: str) -> str:
    """Return a pattern of these texts with any numbers, in the installation's language."""
    longest_first = sorted({_NUMBER.sub("0", text) for text in texts}, key=len, reverse=True)
    return "|".join(escape(text).replace("0", r"\d+") for text in longest_first)


# What differs between the sentences of workers with the same trouble: how long, how often, and the size of a pool that grows.
_FORMS = (1, 2, 5)  # numbers that have all the plural forms of most languages
_ASIDE = _like(*(plural(count, "restart", "restarts") for count in _FORMS), pool_growth("1", "2", "3"))
_UNITS = (("second", "seconds"), ("minute", "minutes"), ("hour", "hours"))
_TIMES = _like(*(plural(count, *unit) for unit in _UNITS for count in _FORMS))
_ASIDES = RepeatedExpression(rf" \((?:{_ASIDE})\)")
_VARYING = RepeatedExpression(rf"{_TIMES}|{_ASIDES.pattern}")
_MOST_REASONS = 5  # that are told one by one; of more, the rarest are counted


@dataclass(frozen=True, slots=True)
class Member:
    """One pod of a cluster, with its diagnosis by `explain_pod`; `events` are the pod's own, oldest first."""

    pod: Pod
    diagnosis: Diagnosis
    events: tuple[Event, ...] = ()

    @property
    def phase(self) -> Phase:
        pod, diagnosis = self.pod, self.diagnosis
        if pod.metadata.deletion_timestamp is not None:
            return "ending"
        if diagnosis.code in ("volume", "pulling"):
            return "volume" if diagnosis.code == "volume" else "image"
        if is_ready(pod):
            return "ready"
        if not pod.spec.node_name and pod.status.phase == "Pending":
            return "node"
        has_trouble = diagnosis.severity == "problem" or pod.status.phase == "Failed"
        return "trouble" if has_trouble and diagnosis.code != _RESTARTED else "start"


@dataclass(frozen=True, slots=True)
class ClusterSnapshot:
    """The state of a cluster at one moment. `head` is None while there is no head pod; `ready_nodes` counts the nodes of the workers' pool;
    `wanted_before` holds the desired numbers of workers, oldest first, of at least the last 15 minutes."""

    minimum: int
    maximum: int
    autoscales: bool
    head: Member | None
    workers: tuple[Member, ...]
    autoscaler: Autoscaler | None = None
    ready_nodes: int = 0
    wanted_before: tuple[tuple[datetime, int], ...] = ()

    @property
    def head_is_up(self) -> bool:
        return self.head is not None and self.head.phase == "ready"

    @property
    def staying(self) -> tuple[Member, ...]:
        """The workers that exist and are not ending."""
        return tuple(worker for worker in self.workers if worker.phase != "ending")

    @property
    def on_nodes(self) -> int:
        """The number of workers that occupy a node now, including those that are ending there."""
        return sum(holds_a_node(worker.pod) for worker in self.workers)

    @property
    def ready(self) -> int:
        return sum(worker.phase == "ready" for worker in self.workers)

    @property
    def ready_since(self) -> datetime | None:
        """When the first of the workers that are ready became ready; None when none is."""
        ready = (true_since(worker.pod, "Ready") for worker in self.workers if worker.phase == "ready")
        return min((at for at in ready if at is not None), default=None)

    @property
    def wanted(self) -> int:
        """The desired number of workers: the autoscaler's within the present bounds, or the minimum."""
        desired = self.autoscaler.status.desired_replicas if self.autoscaler and self.autoscales else 0
        if desired:
            return min(max(desired, self.minimum), self.maximum)
        return max(self.minimum, min(len(self.staying), self.maximum)) if self.autoscales else self.minimum


def summary(cluster: ClusterSnapshot) -> str:
    """Return for example "6 of 16 workers; 8 wait for node 2 of 3, 2 for image pull." The head comes first while it is not up."""
    head = _head_words(cluster)
    if head and not cluster.workers:
        return _("{head}; workers wait for it.", head=head)
    workers = plural(cluster.wanted, "worker", "workers")
    words = _("{ready} of {workers}", ready=min(cluster.ready, cluster.wanted), workers=workers)
    rest = ", ".join(_groups(cluster))
    return (f"{head}; " if head else "") + (f"{words}; {rest}." if rest else f"{words}.")


def explain_cluster(cluster: ClusterSnapshot, *, now: datetime) -> tuple[Diagnosis, ...]:
    """Return every diagnosis of what stands in the cluster's way, worst first; () when nothing does."""
    # One diagnosis for each different reason why workers wait for a node or a volume.
    waiting = [worker for worker in cluster.workers if worker.phase in ("node", "volume")]
    diagnoses = [
        *_about_head(cluster),
        *_together("workers_pending", waiting),
        *_about_memory(cluster),
        *_about_trouble(cluster),
        *_about_autoscaler(cluster, now),
        *_about_maximum(cluster),
        *_about_thrashing(cluster, now),
    ]
    return tuple(sorted(diagnoses, key=lambda diagnosis: _WEIGHT.index(diagnosis.severity)))


def deletion_order(workers: Sequence[Member], *, now: datetime) -> list[Member]:
    """Return the workers in the order in which Kubernetes deletes them when the cluster shrinks."""
    staying = {worker.pod.metadata.uid: worker for worker in workers if worker.phase != "ending"}
    pods = [_ranked(worker.pod) for worker in staying.values()]
    return [staying[pod.uid] for pod in pod_ranking.rank_for_deletion(pods, [pod.node for pod in pods], now)]


def _ranked(pod: Pod) -> pod_ranking.RankedPod:
    return pod_ranking.RankedPod(
        uid=pod.metadata.uid,
        node=pod.spec.node_name,
        phase=pod.status.phase,
        is_ready=is_ready(pod),
        cost=pod_ranking.read_cost(pod.metadata.annotations.get(POD_DELETION_COST)),
        ready_since=true_since(pod, "Ready"),
        restarts=max((status.restart_count for status in pod.status.container_statuses), default=0),
        created=pod.metadata.creation_timestamp,
    )


def _head_words(cluster: ClusterSnapshot) -> str:
    if cluster.head is None:
        return _("The head is being created")
    return {
        "ready": "",
        "start": _("The head is starting"),
        "image": _("The head waits for image pull"),
        "volume": _("The head waits for its volume"),
        "node": _("The head waits for a node"),
        "trouble": _("The head is in trouble"),
        "ending": _("The head is ending"),
    }[cluster.head.phase]


def _groups(cluster: ClusterSnapshot) -> list[str]:
    """Return what the workers that are not ready wait for, in the order of starting: "8 wait for node 2 of 3", "2 for image pull"."""
    counts = Counter[str](worker.phase for worker in cluster.workers)
    reasons = {"node": _which_node(cluster), "volume": _("a volume"), "image": _("image pull")}
    if counts["start"] and not cluster.head_is_up:
        reasons["start"] = _("the head")
    groups: list[str] = []
    for phase, reason in reasons.items():
        if count := counts[phase]:
            waiting = ngettext("{count} waits for {reason}", "{count} wait for {reason}", count, reason=reason)
            groups.append(_("{count} for {reason}", count=count, reason=reason) if groups else waiting)
    if (count := counts["start"]) and "start" not in reasons:
        groups.append(ngettext("{count} starts", "{count} start", count))
    if missing := max(0, cluster.wanted - len(cluster.staying)):
        groups.append(ngettext("{count} is being created", "{count} are being created", missing))
    if surplus := max(0, len(cluster.staying) - cluster.wanted):
        groups.append(ngettext("{count} more is to be removed", "{count} more are to be removed", surplus))
    if count := counts["trouble"]:
        groups.append(ngettext("{count} is in trouble", "{count} are in trouble", count))
    if count := counts["ending"]:
        groups.append(ngettext("{count} is leaving", "{count} are leaving", count))
    return groups


def _which_node(cluster: ClusterSnapshot) -> str:
    """Return "node 2 of 3": the next node to become ready, and the size to which the autoscaler scales the pool up."""
    waiting = [worker for worker in cluster.workers if worker.phase == "node"]
    promised = max((promised_size(worker.events) for worker in waiting), default=0)
    if promised <= cluster.ready_nodes:
        return _("a node")
    return _("node {ready_nodes} of {promised}", ready_nodes=cluster.ready_nodes + 1, promised=promised)


def _about_head(cluster: ClusterSnapshot) -> Sequence[Diagnosis]:
    """Explain a head that is not up. An ordinary start needs no diagnosis: the summary tells it."""
    if cluster.head is None or cluster.head.phase == "ready":
        return ()
    why = cluster.head.diagnosis
    if cluster.head.phase == "start" and why.severity != "problem" and not cluster.ready:
        return ()
    lost = _(" Workers reconnect by themselves when it is.") if cluster.ready else ""
    sentence = _("The head is not up: {sentence}{lost}", sentence=why.sentence, lost=lost)
    severity = "wait" if why.severity == "ok" else why.severity
    return [replace(why, code="head_down", sentence=sentence, severity=severity)]


def _about_trouble(cluster: ClusterSnapshot) -> Sequence[Diagnosis]:
    """Explain the workers that cannot start or keep restarting; `_about_memory` explains those that were out of memory. A worker that
    runs again after exit code 0, or that ended while its head restarted, has only followed its head and is left out."""
    troubled = [
        worker
        for worker in cluster.workers
        if worker.phase not in ("node", "volume", "ending")
        and worker.diagnosis.severity == "problem"
        and not _died_of_memory(worker.pod)
        and not ((worker.phase == "ready" or worker.diagnosis.code == _RESTARTED) and _followed(worker, cluster.head))
    ]
    return _together("workers_failing", troubled)


def _followed(worker: Member, head: Member | None) -> bool:
    """Return True when the worker ended without an error, or while its head restarted: frameworks end workers with an error when the head
    is gone, some only after having missed the new head for a while."""
    ends = [status.last_state.terminated for status in worker.pod.status.container_statuses]
    if all(end is None or end.exit_code == 0 for end in ends):
        return True
    up, statuses = (true_since(head.pod, "Ready"), head.pod.status.container_statuses) if head else (None, ())
    began = next((status.state.running.started_at for status in statuses if status.state.running is not None), None)
    if up is None or began is None:
        return False
    first, last = began - FOLLOWING_SPAN, up + FOLLOWING_SPAN
    return all(end is None or (end.finished_at is not None and first <= end.finished_at <= last) for end in ends)


def _together(code: str, members: Sequence[Member]) -> list[Diagnosis]:
    """Return a diagnosis for each different reason, that of most workers first. Workers in different pools or with different images have
    different reasons of one code, so the sentences are compared."""
    by_reason: dict[tuple[str, str], list[Member]] = {}
    for member in members:
        # Its sentence without the worker's own name and without what varies tells a reason from others.
        sentence = member.diagnosis.sentence.replace(member.pod.metadata.name, "")
        by_reason.setdefault((member.diagnosis.code, _VARYING.sub("", sentence)), []).append(member)
    groups = sorted(by_reason.values(), key=len, reverse=True)
    shown_groups = groups if len(groups) <= _MOST_REASONS + 1 else groups[:_MOST_REASONS]
    diagnoses = []
    for alike in shown_groups:
        why = alike[0].diagnosis
        is_same = all(member.diagnosis.sentence == why.sentence for member in alike)
        sentence = why.sentence if is_same else _ASIDES.sub("", why.sentence)
        diagnoses.append(replace(why, code=code, sentence=f"{plural(len(alike), 'worker', 'workers')}: {sentence}"))
    if others := [member for alike in groups[len(shown_groups) :] for member in alike]:
        diagnoses.append(_others(code, others, reasons=len(groups) - len(shown_groups)))
    return diagnoses


def _others(code: str, members: Sequence[Member], *, reasons: int) -> Diagnosis:
    workers = plural(len(members), "other worker", "other workers")
    sentence = _(
        "{other_workers}: {reasons} other reasons, each on its pod's page.", other_workers=workers, reasons=reasons
    )
    severity = min((member.diagnosis.severity for member in members), key=_WEIGHT.index)
    first = next(member.diagnosis for member in members if member.diagnosis.severity == severity)
    return Diagnosis(code, sentence, severity, first.who, _("Look at the pods of the workers."))


def _about_memory(cluster: ClusterSnapshot) -> Sequence[Diagnosis]:
    killed = [worker.pod for worker in cluster.workers if _died_of_memory(worker.pod)]
    if not killed:
        return ()
    sentence = ngettext(
        "{count:,} worker was ended for using more memory than the tier has, and started again; "
        "what only it held had to be computed again.",
        "{count:,} workers were ended for using more memory than the tier has, and started again; "
        "what only they held had to be computed again.",
        len(killed),
    )
    restarts = sum(status.restart_count for pod in killed for status in pod.status.container_statuses)
    names = ", ".join(pod.metadata.name for pod in killed)
    evidence = quoted(f"{_OUT_OF_MEMORY}, {plural(restarts, 'restart', 'restarts')}: {names}")
    step = _("Launch with a worker tier that has more memory, or cut the data into smaller pieces.")
    return [Diagnosis("workers_out_of_memory", sentence, "problem", "you", step, evidence)]


def _died_of_memory(pod: Pod) -> bool:
    statuses = pod.status.container_statuses
    ends = [end for status in statuses for end in (status.state.terminated, status.last_state.terminated)]
    return any(end is not None and end.reason == _OUT_OF_MEMORY for end in ends)


def _about_autoscaler(cluster: ClusterSnapshot, now: datetime) -> Sequence[Diagnosis]:
    """Explain the autoscaler. Without a ready worker it has nothing to measure, and the diagnoses above matter more."""
    if cluster.autoscaler is None or not cluster.autoscales or not cluster.ready:
        return ()
    diagnosis = explain_autoscaler(cluster.autoscaler, ready_since=cluster.ready_since, now=now)
    return [diagnosis] if diagnosis else ()


def _about_maximum(cluster: ClusterSnapshot) -> Sequence[Diagnosis]:
    if cluster.autoscaler is None or not cluster.autoscales or cluster.ready < cluster.maximum:
        return ()
    all_loads = loads(cluster.autoscaler, maximum=cluster.maximum)
    if not (over := ", ".join(load.words for load in all_loads if load.is_over)):
        return ()
    workers = plural(cluster.maximum, "worker", "workers")
    sentence = _(
        "The cluster is at its maximum of {workers}, and that is too few: {measured}.", workers=workers, measured=over
    )
    step = _("Raise the maximum with “Change workers”, or launch with a larger worker tier.")
    return [Diagnosis("at_maximum", sentence, "wait", "you", step)]


def _about_thrashing(cluster: ClusterSnapshot, now: datetime) -> Sequence[Diagnosis]:
    wanted = [wanted for at, wanted in cluster.wanted_before if now - at <= THRASHING_SPAN]
    steps = [after - before for before, after in pairwise(wanted) if after != before]
    turns = sum((step > 0) is not (other > 0) for step, other in pairwise(steps))
    if turns < THRASHING_TURNS:
        return ()
    sentence = _(
        "The cluster alternated between growing and shrinking {turns} times in the last 15 minutes.", turns=turns
    )
    step = _(
        "A longer wait before shrinking stops this: ask your admin to raise it in the central configuration, "
        "or raise the minimum with “Change workers”."
    )
    return [Diagnosis("thrashing", sentence, "wait", "admin", step)]
