"""What a Job needs next, from its object and its pods: which pods to make or delete, whether it is finished, and its status. All pure.

A pod that has ended is counted in three steps, so that none is counted twice or missed, whatever is killed in between: its uid goes
into `uncountedTerminatedPods` (`counted`), its finalizer goes, and then the uid becomes a number (`settled`).
"""

import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

from grid.sandbox.client import Object, condition_of, format_time, is_terminating, parse_time, uid_of
from grid.sandbox.controllers.jobpods import (
    ended_at,
    format_indexes,
    has_failed,
    has_succeeded,
    index_of,
    is_indexed,
    is_tracked,
    judge_failure,
    parse_indexes,
    replaces_only_failed,
    restarts_of,
)
from grid.sandbox.controllers.podresources import is_finished
from grid.sandbox.controllers.replicas import deletion_order, is_active, is_ready

_FIRST_WAIT, _LONGEST_WAIT = 10.0, 600.0
_MOST_UNCOUNTED = 500
MOST_AT_ONCE = 500
_BACKOFF_LIMIT = ("BackoffLimitExceeded", "Job has reached the specified backoff limit")
_DEADLINE = ("DeadlineExceeded", "Job was active longer than specified deadline")
_COMPLETE = ("CompletionsReached", "Reached expected number of succeeded pods")
_TARGETS = {"Failed": "FailureTarget", "Complete": "SuccessCriteriaMet"}


@dataclass(frozen=True, slots=True)
class Failures:
    """How often pods of a Job have failed since one succeeded, and when last."""

    count: int = 0
    last: datetime | None = None

    def after(self, succeeded: Sequence[Object], failed: Sequence[Object]) -> "Failures":
        """Return the same with these newly ended pods."""
        ends = sorted(ended_at(pod) for pod in failed)
        if succeeded:
            latest = max(ended_at(pod) for pod in succeeded)
            later = [end for end in ends if end > latest]
            return Failures(len(later), later[-1] if later else None)
        return Failures(self.count + len(ends), ends[-1]) if ends else self

    def wait(self, now: datetime) -> float:
        """Return the seconds until the next pod may be made."""
        if not self.count or self.last is None:
            return 0.0
        whole = min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** min(self.count - 1, 30))
        return max(0.0, whole - (now - self.last).total_seconds())


@dataclass(frozen=True, slots=True)
class JobView:
    """A Job, its pods, and the pods of which it is known that their finalizer is gone although the mirror still shows it."""

    job: Object
    pods: Sequence[Object]
    released: Collection[str] = frozenset()
    failures: Failures = field(default_factory=Failures)

    @property
    def spec(self) -> Mapping[str, Any]:
        return dict(self.job["spec"])

    @property
    def status(self) -> Mapping[str, Any]:
        return self.job.get("status") or {}

    def holds(self, pod: Object) -> bool:
        """Return True while the pod has the finalizer by which it is tracked."""
        return is_tracked(pod) and uid_of(pod) not in self.released

    def uncounted(self, which: str) -> list[str]:
        return list((self.status.get("uncountedTerminatedPods") or {}).get(which) or ())


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do now: delete these pods, make that many (with these indexes), and finish as `end` says."""

    active: Sequence[Object]
    terminating: int
    delete: Sequence[Object] = ()
    release_first: bool = False  # deleted pods lose their finalizer before, so that they do not count as failed
    create: int = 0
    indexes: Sequence[int] = ()
    end: Object | None = None  # the condition Failed or Complete that the Job is about to get
    suspends: bool = False
    resumes: bool = False
    failures: Failures = field(default_factory=Failures)
    again: float | None = None  # seconds until the next look

    @property
    def events(self) -> list[tuple[str, str]]:
        if self.suspends:
            return [("Suspended", "Job suspended")]
        return [("Resumed", "Job resumed")] if self.resumes else []


def is_finished_job(job: Mapping[str, Any]) -> bool:
    return finished_condition(job) is not None


def finished_condition(job: Mapping[str, Any]) -> dict[str, Any] | None:
    for kind in ("Complete", "Failed"):
        found = condition_of(job, kind)
        if found is not None and found["status"] == "True":
            return found
    return None


def condition(kind: str, status: str, reason: str, message: str, now: datetime) -> Object:
    stamp = format_time(now)
    times = {"lastProbeTime": stamp, "lastTransitionTime": stamp}
    return {"type": kind, "status": status, **times, "reason": reason, "message": message}


def decide(view: JobView, now: datetime, *, settled: bool) -> Decision:
    """Decide on pods. While the mirror is behind (not `settled`) nothing is made or deleted, and nothing finishes."""
    active = [pod for pod in view.pods if is_active(pod)]
    terminating = sum(is_terminating(pod) and not is_finished(pod) for pod in view.pods)
    fresh = [pod for pod in view.pods if view.holds(pod) and _belongs(view, pod)]
    succeeded = [pod for pod in fresh if has_succeeded(pod) and uid_of(pod) not in view.uncounted("succeeded")]
    failed = [pod for pod in fresh if has_failed(pod, view.job) and uid_of(pod) not in view.uncounted("failed")]
    failures = view.failures.after(succeeded, failed)
    known = Decision(active, terminating, failures=failures)
    counted = [pod for pod in failed if judge_failure(view.spec.get("podFailurePolicy"), pod)[1]]
    failed_count = view.status.get("failed", 0) + len(counted) + len(view.uncounted("failed"))
    end = _already_decided(view, now) or _failure(view, failed_count, now)
    if end is not None:
        return replace(known, delete=active, end=end) if settled else known
    indexes = _completed_indexes(view)
    if is_indexed(view.job):
        succeeded_count = len(indexes)
    else:
        succeeded_count = view.status.get("succeeded", 0) + len(succeeded) + len(view.uncounted("succeeded"))
    again = _until_deadline(view, now)
    if not settled or is_terminating(view.job):
        plan = replace(known, again=again)
    else:
        plan = _manage(view, known, succeeded_count, indexes, now)
        plan = replace(plan, again=min((wait for wait in (plan.again, again) if wait is not None), default=None))
    left = len(active) - len(plan.delete) + plan.create
    wanted = view.spec.get("completions")
    if left == 0 and (succeeded_count > 0 if wanted is None else succeeded_count >= wanted):
        return replace(plan, end=condition("Complete", "True", *_COMPLETE, now))
    if settled and not is_terminating(view.job):
        return _suspension(view, plan)
    return plan


def _belongs(view: JobView, pod: Object) -> bool:
    return not is_indexed(view.job) or index_of(pod, view.spec["completions"]) is not None


def _already_decided(view: JobView, now: datetime) -> Object | None:
    for kind in ("Complete", "Failed"):
        found = condition_of(view.job, _TARGETS[kind])
        if found is not None and found["status"] == "True":
            return condition(kind, "True", found["reason"], found["message"], now)
    return None


def _failure(view: JobView, failed: int, now: datetime) -> Object | None:
    spec = view.spec
    policy = spec.get("podFailurePolicy")
    for pod in view.pods if policy else ():
        message = judge_failure(policy, pod)[0] if has_failed(pod, view.job) else ""
        if message:
            return condition("Failed", "True", "PodFailurePolicy", message, now)
    restarts = 0
    if spec["template"]["spec"].get("restartPolicy") == "OnFailure":
        restarts = sum(restarts_of(pod) for pod in view.pods)
    if failed > spec["backoffLimit"] or restarts >= max(spec["backoffLimit"], 1):
        return condition("Failed", "True", *_BACKOFF_LIMIT, now)
    wait = _until_deadline(view, now)
    return condition("Failed", "True", *_DEADLINE, now) if wait is not None and wait <= 0 else None


def _until_deadline(view: JobView, now: datetime) -> float | None:
    allowed, started = view.spec.get("activeDeadlineSeconds"), parse_time(view.status.get("startTime"))
    if allowed is None or view.spec.get("suspend"):
        return None
    return float(allowed) - (now - (started or now)).total_seconds()


def _completed_indexes(view: JobView) -> set[int]:
    if not is_indexed(view.job):
        return set()
    completions = view.spec["completions"]
    known = parse_indexes(view.status.get("completedIndexes", ""), completions)
    found = (index_of(pod, completions) for pod in view.pods if has_succeeded(pod) and view.holds(pod))
    return known | {index for index in found if index is not None}


def _manage(view: JobView, known: Decision, succeeded: int, done: set[int], now: datetime) -> Decision:
    active, spec = known.active, view.spec
    if spec.get("suspend"):
        return replace(known, delete=active, release_first=True)
    completions, parallelism = spec.get("completions"), spec["parallelism"]
    wanted = max(0, min(parallelism, completions - succeeded)) if completions is not None else parallelism
    if completions is None and succeeded:
        wanted = len(active)  # a work queue of which one pod has found the end: the others end by themselves
    surplus = _surplus(view, active, max(0, len(active) - wanted), now)
    if surplus:
        return replace(known, delete=surplus[:MOST_AT_ONCE], release_first=True)
    missing = wanted - len(active) - (known.terminating if replaces_only_failed(view.job) else 0)
    if missing <= 0:
        return known
    wait = known.failures.wait(now)
    if wait > 0:
        return replace(known, again=wait)
    missing = min(missing, MOST_AT_ONCE)
    if not is_indexed(view.job):
        return replace(known, create=missing)
    completions = spec["completions"]
    taken = done | {index for pod in active if (index := index_of(pod, completions)) is not None}
    if replaces_only_failed(view.job):
        ending = (index_of(pod, completions) for pod in view.pods if is_terminating(pod) and not is_finished(pod))
        taken |= {index for index in ending if index is not None}
    free = (index for index in range(completions) if index not in taken)
    indexes = [index for index, _ in zip(free, range(missing), strict=False)]
    return replace(known, create=len(indexes), indexes=indexes)


def _surplus(view: JobView, active: Sequence[Object], at_least: int, now: datetime) -> list[Object]:
    """Return the pods to delete: without a valid index, or with the same one, and then the least useful."""
    ordered = deletion_order(active, (), now)
    chosen: list[Object] = []
    if is_indexed(view.job):
        best: set[int] = set()
        for pod in reversed(ordered):
            index = index_of(pod, view.spec["completions"])
            if index is None or index in best:
                chosen.append(pod)
            else:
                best.add(index)
    rest = [pod for pod in ordered if pod not in chosen]
    return chosen + rest[: max(0, at_least - len(chosen))]


def _suspension(view: JobView, plan: Decision) -> Decision:
    found = condition_of(view.job, "Suspended")
    is_said = found is not None and found["status"] == "True"
    if view.spec.get("suspend"):
        return replace(plan, suspends=not is_said)
    return replace(plan, resumes=is_said)


def started(view: JobView, plan: Decision, now: datetime, *, active: int, ready: int, terminating: int) -> Object:
    """Return the status with what is known of pods that are there, and with a suspension that begins or ends."""
    status = copy.deepcopy(dict(view.status))
    conditions = status.get("conditions") or []
    if plan.suspends or plan.resumes:
        said = ("True", "JobSuspended", "Job suspended") if plan.suspends else ("False", "JobResumed", "Job resumed")
        new = condition("Suspended", *said, now)
        kept = [item["type"] for item in conditions]
        conditions = [new if item["type"] == "Suspended" else item for item in conditions]
        conditions += [] if "Suspended" in kept else [new]
        status["conditions"] = conditions
    if plan.resumes or ("startTime" not in status and not view.spec.get("suspend")):
        status["startTime"] = format_time(now)
    _set_count(status, "active", active)
    status["ready"] = ready
    status["terminating"] = terminating
    status.setdefault("uncountedTerminatedPods", {})
    return status


def counted(view: JobView, end: Object | None, status: Object) -> tuple[Object, list[Object]]:
    """Return the status with the uids of pods that have ended and the condition that announces the end, and the pods to release."""
    status = settled(status, {uid_of(pod) for pod in view.pods if view.holds(pod)})
    uncounted = {which: view_of(status, which) for which in ("succeeded", "failed")}
    indexes = (
        parse_indexes(status.get("completedIndexes", ""), view.spec["completions"]) if is_indexed(view.job) else set()
    )
    before = len(indexes)
    release: list[Object] = []
    # Pods in the order of their index, so that a limited number is a beginning of the Job.
    for pod in sorted(view.pods, key=lambda pod: index_of(pod, view.spec.get("completions") or 0) or 0):
        failed = has_failed(pod, view.job)
        ends = end is not None or is_terminating(view.job) or has_succeeded(pod) or failed
        if not view.holds(pod) or not ends:
            continue
        release.append(pod)
        _count_one(view, end, pod, uncounted, indexes, failed=failed)
        if len(indexes) - before + len(uncounted["succeeded"]) + len(uncounted["failed"]) >= _MOST_UNCOUNTED:
            break
    status["uncountedTerminatedPods"] = {which: uids for which, uids in uncounted.items() if uids}
    if is_indexed(view.job):
        _set_count(status, "succeeded", len(indexes))
        status["completedIndexes"] = format_indexes(indexes)
        if not indexes:
            del status["completedIndexes"]
    if end is not None and condition_of(view.job, _TARGETS[end["type"]]) is None:
        target = {**end, "type": _TARGETS[end["type"]]}
        status["conditions"] = [*(status.get("conditions") or ()), target]
    return status, release


def _count_one(
    view: JobView, end: Object | None, pod: Object, uncounted: dict[str, list[str]], indexes: set[int], *, failed: bool
) -> None:
    uid = uid_of(pod)
    if has_succeeded(pod) and uid not in uncounted["failed"]:
        if is_indexed(view.job):
            index = index_of(pod, view.spec["completions"])
            indexes.update(() if index is None else (index,))
        elif uid not in uncounted["succeeded"]:
            uncounted["succeeded"].append(uid)
        return
    is_new_failure = uid not in uncounted["failed"] and not has_succeeded(pod) and _belongs(view, pod)
    is_failure = failed or (end or {}).get("type") == "Failed"
    if is_new_failure and is_failure and judge_failure(view.spec.get("podFailurePolicy"), pod)[1]:
        uncounted["failed"].append(uid)


def view_of(status: Object, which: str) -> list[str]:
    return list((status.get("uncountedTerminatedPods") or {}).get(which) or ())


def settled(status: Object, held: Collection[str]) -> Object:
    """Return the status in which the uids of pods without their finalizer have become numbers; `held` still have it."""
    status = dict(status)
    left: dict[str, list[str]] = {}
    for which in ("succeeded", "failed"):
        uids = view_of(status, which)
        left[which] = [uid for uid in uids if uid in held]
        _set_count(status, which, status.get(which, 0) + len(uids) - len(left[which]))
    status["uncountedTerminatedPods"] = {which: uids for which, uids in left.items() if uids}
    return status


def ended(status: Object, end: Object | None, now: datetime) -> Object:
    """Return the status with the final condition, once every pod is counted and none is still ending."""
    if end is None or status["uncountedTerminatedPods"] or status["terminating"]:
        return status
    final = condition(end["type"], "True", end["reason"], end["message"], now)
    status = {**status, "conditions": [*(status.get("conditions") or ()), final]}
    if end["type"] == "Complete":
        status["completionTime"] = final["lastTransitionTime"]
    return status


def announcements(job: Mapping[str, Any]) -> list[tuple[Literal["Normal", "Warning"], str, str]]:
    """Return the events (type, reason, message) about a Job that has just finished."""
    end, wanted = finished_condition(job), job["spec"].get("completions")
    if end is None:
        return []
    if end["type"] == "Failed":
        return [("Warning", end["reason"], end["message"])]
    told: list[tuple[Literal["Normal", "Warning"], str, str]] = [("Normal", "Completed", "Job completed")]
    if wanted is not None and job["status"].get("succeeded", 0) > wanted:
        message = "Too many succeeded pods running after completion count reached"
        told.insert(0, ("Warning", "TooManySucceededPods", message))
    return told


def _set_count(status: Object, name: str, count: int) -> None:
    """Set a number that is left out when it is zero."""
    status.pop(name, None)
    if count:
        status[name] = count


def ready_count(pods: Collection[Object]) -> int:
    return sum(is_ready(pod) for pod in pods)
