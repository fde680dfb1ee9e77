"""Explains a pod: why it waits, what it does, or why it failed, from its status and its own events.

The only place for these rules: pages, the controller's error messages and notifications all say the same. Pure: the same pod, events and
time give the same words.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from grid.core.translation import gettext as _, ngettext
from grid.core.wording import capitalised, duration, exact_duration, folded, listed
from grid.diagnosis.beside import PROGRAM, is_about, part_of, programs, spec_of
from grid.diagnosis.containers import OUT_OF_MEMORY, explain_running, explain_terminated, explain_waiting
from grid.diagnosis.diagnosis import Diagnosis, Who, latest, quoted, since, together
from grid.diagnosis.disruptions import (
    disruption_cause,
    disruption_of,
    explain_disrupted,
    explain_evicted,
    explain_rejected,
    is_before,
    is_rejected,
)
from grid.diagnosis.exits import NOT_LOCATED
from grid.diagnosis.images import explain_pull
from grid.diagnosis.nodefaults import LOOK_AT_NODE, fault_of
from grid.diagnosis.nodetroubles import is_certain, node_troubles
from grid.diagnosis.placement import SchedulingContext, explain_placement
from grid.diagnosis.rules import core_words
from grid.diagnosis.run_report import explain_files, fetches
from grid.diagnosis.startup import true_since
from grid.diagnosis.unlikeasked import unlike_asked
from grid.kube.objects import Condition, ContainerStatus, Event, Node, Pod, Terminated, true_condition

__all__ = ["Diagnosis", "explain_end", "explain_pod"]

_SHORTLY = timedelta(minutes=2)
_STUCK, _IS_NEW = timedelta(minutes=1), timedelta(minutes=5)
_KEPT = _("the project's files are kept.")
_GIVEN_UP = timedelta(minutes=10)  # Kubernetes gives up what runs on a silent node after 5
# What a container fails for whatever the others do; a program that crashes may miss one of them.
_OF_ITS_OWN = {"image", "config", "command", "container", "crash_loop", "probe", OUT_OF_MEMORY}
_IN_ORDER_OF_WEIGHT = ("problem", "wait", "ok")


def explain_pod(
    pod: Pod,
    events: Sequence[Event],
    *,
    now: datetime,
    scheduling: SchedulingContext | None = None,
    node: Node | None = None,
    is_node_deleted: bool = False,
) -> Diagnosis:
    """Explain the pod's present state; `events` are those of this pod, oldest first. `scheduling` says why it has no node, where known,
    `node` is its node's object, and `is_node_deleted` says that it is gone, of which the pod itself tells nothing."""
    nodes = scheduling.nodes if scheduling is not None and node is None else ()
    node = node or next((each for each in nodes if each.metadata.name == pod.spec.node_name), None)
    # A finalizer may keep a pod from being deleted for so long that this counts more than how its program ended.
    is_kept = bool(pod.metadata.finalizers) and since(pod.metadata.deletion_timestamp, now) > _STUCK
    if not is_kept and (end := explain_end(pod, events)) is not None:
        return _beside_trouble(end, node, ended=pod)
    if pod.metadata.deletion_timestamp is not None:
        return _ending(pod, events, node, now)
    if pod.status.phase == "Unknown":
        return _node_lost(pod, quoted(pod.status.message), timedelta(0))
    if not pod.spec.node_name:
        return explain_placement(pod, events, scheduling, now=now)
    if is_node_deleted:
        return _node_deleted(pod)
    silent = _silent_node(pod, events, node, now)
    why = unlike_asked(pod, _containers(pod, events, now), now)
    is_late = why.code == "preparing" and since(true_since(pod, "PodScheduled"), now) > _IS_NEW
    return silent or _beside_trouble(why, node, is_late=is_late)


def _beside_trouble(why: Diagnosis, node: Node | None, *, ended: Pod | None = None, is_late: bool = False) -> Diagnosis:
    """Return the diagnosis of a problem, or of a start that takes long (`is_late`), with the trouble that the pod's node reports, which may
    be its cause; `ended`: the pod is over."""
    troubles = node_troubles(node) if node is not None and (is_late or why.severity == "problem") else ()
    of_now = [(each, words) for each, words in troubles if is_certain(each) and _may_be_cause(each, ended)]
    if node is None or not of_now:
        return why
    words, evidence = listed([words for _each, words in of_now]), quoted(*(each.message for each, _words in of_now))
    sentence = _("Its node {node} is in trouble: {words}.", node=node.metadata.name, words=words)
    why = why if why.severity == "problem" else replace(why, severity="problem", who="operator", next_step="")
    return together(why, replace(why, sentence=sentence, next_step=LOOK_AT_NODE, evidence=evidence))


def _may_be_cause(trouble: Condition, ended: Pod | None) -> bool:
    """Return whether a node's trouble may be why a pod has ended, if it has. What the node is short of now says nothing of an end before;
    but where it was short of memory already, the kernel also kills what is within its own limit."""
    if ended is None or not trouble.type.endswith("Pressure"):
        return True
    began, ends = trouble.last_transition_time, [status.state.terminated for status in programs(ended)]
    kills = [each.finished_at for each in ends if each and each.exit_code == 137 and each.reason != "OOMKilled"]
    return trouble.type == "MemoryPressure" and any(began <= at for at in kills if began and at)


def explain_end(pod: Pod, events: Sequence[Event] = ()) -> Diagnosis | None:
    """Explain how a pod ended, whatever keeps it as an object; None while it has not ended."""
    if pod.status.phase == "Failed":
        return _failed(pod, events)
    if pod.status.phase == "Succeeded":
        completed = Diagnosis("completed", _("The program ended by itself, without an error."), "ok", "")
        return _first_terminated(pod) or completed
    return None


def _containers(pod: Pod, events: Sequence[Event], now: datetime) -> Diagnosis:
    explained = list[tuple[ContainerStatus, Diagnosis]]()
    for status in _telling(pod):
        files = explain_files(status) if fetches(pod, status) else None
        if files is not None:
            why = files
        elif status.state.terminated is not None:
            why = explain_terminated(pod, status, status.state.terminated)
        elif status.state.running is not None:
            why = explain_running(pod, status, status.state.running, events, now=now)
        else:
            why = explain_waiting(pod, status, events, now=now)
        explained.append((status, why))
    if not explained:
        sentence = _("Node {node} was chosen and starts preparing it.", node=pod.spec.node_name)
        return Diagnosis("preparing", sentence, "wait", "")
    (_status, first), *others = sorted(explained, key=lambda each: _weight(pod, *each))
    mains = (why for status, why in others if part_of(pod, status) != "sidecar" and why.severity == "problem")
    if first.code == "completed" and (kept := _kept_by(pod, now)):
        return replace(kept, sentence=f"{first.sentence} {kept.sentence}", evidence=first.evidence)
    second = next((why for why in mains if why.code in _OF_ITS_OWN and why.sentence != first.sentence), None)
    return together(first, second) if second is not None and first.severity == "problem" else first


def _kept_by(pod: Pod, now: datetime) -> Diagnosis | None:
    """Explain a pod whose program is over, while a container that stands beside it goes on; None for any other."""
    mains = {status.name: status.state for status in programs(pod)}
    ended = mains[PROGRAM].terminated if PROGRAM in mains else None
    if ended is None or ended.exit_code or since(ended.finished_at, now) < _IS_NEW:
        return None
    going_on = [name for name, state in mains.items() if state.running is not None]
    if not going_on:
        return None
    singular, several = _("Container {names} still runs, so"), _("Containers {names} still run, so")
    still = ngettext(singular, several, len(going_on), names=listed(going_on))
    sentence = _("{still} the pod keeps what it requests.", still=still)
    step = _("Stop it; ask your admin to make a native sidecar of {names}.", names=listed(going_on))
    return Diagnosis("kept_running", sentence, "problem", "admin", step)


def _weight(pod: Pod, status: ContainerStatus, why: Diagnosis) -> tuple[int, bool, bool, bool]:
    """Return what is least for the diagnosis that counts: the worst one, then the program before its sidecars, and want of memory, which
    often ends the other containers too. What tells more than that a container is being prepared comes first."""
    return (
        _IN_ORDER_OF_WEIGHT.index(why.severity),
        part_of(pod, status) == "sidecar",
        why.code != OUT_OF_MEMORY,
        why.code == "preparing",
    )


def _telling(pod: Pod) -> list[ContainerStatus]:
    """Return the containers whose state matters, in the order in which they start: without setup steps that are done, without programs
    that wait for setup, and without sidecars once every program has ended."""
    mains = programs(pod)
    done = mains and all(status.state.terminated for status in mains)
    first, others = list[ContainerStatus](), list[ContainerStatus]()
    for status in pod.status.init_container_statuses:
        ended = status.state.terminated
        if part_of(pod, status) == "sidecar":
            if not done:
                first.append(status)
        elif ended is None or ended.exit_code:
            first.append(status)
    for status in mains if done else pod.status.container_statuses:
        waiting = status.state.waiting
        if not first or waiting is None or waiting.reason != "PodInitializing":
            others.append(status)
    return [*first, *others]


def _ending(pod: Pod, events: Sequence[Event], node: Node | None, now: datetime) -> Diagnosis:
    overdue = since(pod.metadata.deletion_timestamp, now)  # the timestamp lies at the end of the grace period
    disruption = disruption_of(pod)
    evidence = quoted(disruption.message) if disruption else ()
    # The kubelet's own deletion, by which it confirms the end, has a grace period of 0: only a finalizer keeps the object after it.
    is_confirmed = not pod.spec.node_name or pod.metadata.deletion_grace_period_seconds == 0 or _has_stopped(pod)
    if pod.metadata.finalizers and is_confirmed:
        return _finalized(pod, overdue, evidence)
    was_left = disruption is not None and disruption.reason == "DeletionByTaintManager" and overdue > _STUCK
    lost = _silent_node(pod, events, node, now) or (_node_lost(pod, evidence, overdue) if was_left else None)
    if lost is not None:
        late = _(" This should have ended {ago} ago, which only the node can confirm.", ago=duration(overdue))
        return replace(lost, sentence=lost.sentence + late) if overdue > _STUCK else lost
    if overdue <= _STUCK:
        cause = disruption_cause(pod, disruption) if disruption else ""
        because = _(" because {cause}", cause=cause) if cause else ""
        sentence = _("Ending{because}: the program is given time to close its files.", because=because)
        return Diagnosis("ending", sentence, "wait", "", "", evidence)
    return _stuck_ending(pod, overdue, evidence, latest(events, "FailedKillPod"))


def _has_stopped(pod: Pod) -> bool:
    statuses = pod.status.container_statuses
    return bool(statuses) and all(status.state.terminated for status in statuses)


def _finalized(pod: Pod, overdue: timedelta, evidence: tuple[str, ...]) -> Diagnosis:
    """Explain a pod that has ended and stays as an object: something else has to finish first, whatever the node does."""
    number = len(pod.metadata.finalizers)
    names = ngettext("the finalizer {names}", "the finalizers {names}", number, names=listed(pod.metadata.finalizers))
    if overdue <= _STUCK:
        sentence = _("Ended; waiting for {names} to be removed.", names=names)
        return Diagnosis("ending", sentence, "wait", "", "", evidence)
    singular = _("{names} has kept this from being deleted for {overdue}.")
    several = _("{names} have kept this from being deleted for {overdue}.")
    sentence = ngettext(singular, several, number, names=capitalised(names), overdue=duration(overdue))
    steps = _("Ask an operator what removes the finalizer."), _("Ask an operator what removes the finalizers.")
    return Diagnosis("stuck_ending", sentence, "problem", "operator", ngettext(*steps, number), evidence)


def _stuck_ending(pod: Pod, overdue: timedelta, evidence: tuple[str, ...], failure: Event | None) -> Diagnosis:
    """Explain a pod that is still there a while after the end of its grace period, and not for a finalizer alone."""
    node, ago = pod.spec.node_name, duration(overdue)
    if not node:
        sentence = _("This should have been deleted {ago} ago; it has no node that could hold it.", ago=ago)
        step = _("Ask an operator to look at the pod and at the cluster's controllers.")
    elif _has_stopped(pod):
        says = core_words(failure.message) if failure is not None else ""
        sentence = _("Its containers have ended, but node {node} has not cleaned up after them for {ago}{why}.")
        sentence = sentence.format(node=node, ago=ago, why=f": {says}" if says else "")
        step = _("Ask an operator to look at the node: it may wait for a volume.")
        if failure is not None:
            step, evidence = _("Ask an operator to look at the node."), quoted(*evidence, failure.message)
    elif failure is not None:
        sentence = _("This should have ended {ago} ago, but node {node} cannot end its containers.", ago=ago, node=node)
        step, evidence = _("Ask an operator to drain and reboot the node."), quoted(*evidence, failure.message)
    else:
        sentence = _("This should have ended {ago} ago, but node {node} does not confirm that.", ago=ago, node=node)
        if names := pod.metadata.finalizers:
            sentence = _("{sentence} It is also held by {names} (finalizers).", sentence=sentence, names=listed(names))
        step = _("Ask an operator whether the node is up.")
    return Diagnosis("stuck_ending", sentence, "problem", "operator", step, evidence)


def _failed(pod: Pod, events: Sequence[Event]) -> Diagnosis:
    reason, disruption = pod.status.reason, disruption_of(pod)
    evidence = quoted(reason, pod.status.message, disruption.message if disruption else "")
    if reason == "Evicted":  # the kubelet says so of a pod that ran, whatever dates the condition and the ends have
        return explain_evicted(pod, evidence)
    if disruption is not None and (own := _ended_before(pod, disruption.last_transition_time)) is not None:
        return own
    if disruption is not None and disruption.reason == "DeletionByPodGC":
        return _node_lost(pod, evidence)
    if reason == "NodeLost":
        return _node_lost(pod, evidence, timedelta(0))
    if disruption is not None:
        return explain_disrupted(pod, disruption, evidence, latest(events, "Evicted", "ScaleDown"))
    if is_rejected(pod):
        return explain_rejected(pod, evidence)
    if reason == "DeadlineExceeded":
        return _ended_in_time(pod) or _out_of_time(pod, evidence, events)
    says, step = folded(pod.status.message) or reason, _("Show an operator the messages below.")
    sentence = _("It failed: {says}.", says=says) if says else _("It failed, and Kubernetes does not say why.")
    return _first_terminated(pod) or Diagnosis("failed", sentence, "problem", "operator", step, evidence)


def _out_of_time(pod: Pod, evidence: tuple[str, ...], events: Sequence[Event]) -> Diagnosis:
    mains, limit = programs(pod), exact_duration(pod.spec.active_deadline_seconds or 0)
    unpulled = [status for status in mains if _is_unpulled(status, events)]
    if unpulled or (mains and all(status.state.waiting and not status.last_state.terminated for status in mains)):
        sentence = _("Its timeout of {limit} was over before the program started.", limit=limit)
        if unpulled:
            why = explain_pull(spec_of(pod, unpulled[0]).image, unpulled[0], events)
            return replace(why, sentence=f"{sentence} {why.sentence}", evidence=quoted(*evidence, *why.evidence))
        step = _("Launch it with a longer timeout: what prepares it counts, too, such as the download of its image.")
        return Diagnosis("never_started", sentence, "problem", "you", step, evidence)
    sentence = _("It ran longer than its time limit.")
    if pod.spec.active_deadline_seconds:
        sentence = _("It ran longer than its timeout of {limit}.", limit=limit)
    step = _("Do less in one run, or launch it with a longer timeout.")
    return Diagnosis("deadline", sentence, "problem", "you", step, evidence)


def _is_unpulled(status: ContainerStatus, events: Sequence[Event]) -> bool:
    """Return whether the container never ran for its image. At the end of the pod's time the kubelet calls such a one lost."""
    own = [event for event in events if is_about(event, status)]
    is_lost = status.state.terminated is not None and status.state.terminated.reason in NOT_LOCATED
    never_ran = status.last_state.terminated is None and not latest(own, "Started", "Created", "Pulled")
    return (
        never_ran
        and (is_lost or status.state.waiting is not None)
        and latest(own, "Failed", "InspectFailed") is not None
    )


def _ended_in_time(pod: Pod) -> Diagnosis | None:
    limit, began = pod.spec.active_deadline_seconds, pod.status.start_time
    return None if limit is None or began is None else _ended_before(pod, began + timedelta(seconds=limit))


def _ended_before(pod: Pod, over: datetime | None) -> Diagnosis | None:
    """Explain a program that had ended by itself before Kubernetes ended its pod, while what stands beside it went on; None otherwise."""
    ends = [status.state.terminated for status in programs(pod)]
    by_itself = all(end is not None and not is_before(over, end) for end in ends)
    return _first_terminated(pod) if ends and by_itself else None


def _first_terminated(pod: Pod) -> Diagnosis | None:
    """Explain a finished pod by the container that failed first, want of memory before other errors; None when none has terminated.
    A sidecar is ended by Kubernetes after the program, so how it ends explains nothing but before that."""
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    ended = [(status, status.state.terminated) for status in statuses if status.state.terminated is not None]
    if not ended:
        return None
    status, end = min(ended, key=lambda pair: _in_order_of_cause(pod, *pair))
    about_files = explain_files(status, is_over=True) if fetches(pod, status) else None
    return about_files or together(explain_terminated(pod, status, end), _failed_before(pod, end))


def _failed_before(pod: Pod, end: Terminated) -> Diagnosis | None:
    """Explain a sidecar that failed shortly before the program did, which may have needed it; None without one."""
    until = end.finished_at
    if until is None or not end.exit_code:
        return None
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        for each in (status.last_state.terminated, status.state.terminated):
            at = each.finished_at if each is not None and each.exit_code else None
            if (
                each is not None
                and at is not None
                and until - _SHORTLY < at < until
                and part_of(pod, status) == "sidecar"
            ):
                return explain_terminated(pod, status, each)
    return None


def _in_order_of_cause(pod: Pod, status: ContainerStatus, ended: Terminated) -> tuple[bool, bool, bool, bool, float]:
    part = part_of(pod, status)
    finished = ended.finished_at.timestamp() if ended.finished_at else float("inf")
    return part == "sidecar", ended.exit_code == 0, ended.reason != "OOMKilled", part == "setup", finished


def _silent_node(pod: Pod, events: Sequence[Event], node: Node | None, now: datetime) -> Diagnosis | None:
    """Explain a pod whose node stopped reporting, or reports that it is not ready, as a new one does for some minutes. Without the node:
    its controller marks the pod not ready and gives no reason, while its last known state still looks fine."""
    ready = next((condition for condition in pod.status.conditions if condition.type == "Ready"), None)
    of_node = next((each for each in node.status.conditions if each.type == "Ready"), None) if node else None
    if node and of_node:
        if of_node.status != "False" or since(node.metadata.creation_timestamp, now) < _IS_NEW:
            silent = since(of_node.last_transition_time, now)
            return _node_lost(pod, quoted(of_node.message), silent) if of_node.status == "Unknown" else None
        fault, says = fault_of(of_node.message), folded(of_node.message)
        why = fault.words if fault else of_node.reason
        sentence = _("Node {node} is not ready: {why} ({says}).", node=node.metadata.name, why=why, says=says)
        return _unready(sentence, of_node.message)
    if ready is None or ready.status == "True":
        return None
    if ready.status == "Unknown":
        return _node_lost(pod, quoted(ready.message), since(ready.last_transition_time, now))
    statuses = pod.status.container_statuses
    if not statuses or not all(status.ready for status in statuses):
        return None
    event = latest(events, "NodeNotReady", "TaintManagerEviction")
    is_marked = not ready.reason and true_condition(pod, "ContainersReady") is not None
    if event.message.startswith("Cancelling") if event is not None else not is_marked:
        return None
    sentence = _("Node {node} is not ready or no longer answers.", node=pod.spec.node_name)
    return _unready(sentence, ready.message, event.message if event is not None else "")


def _unready(sentence: str, *messages: str) -> Diagnosis:
    sentence = _("{sentence} Executions there may continue.", sentence=sentence)
    step = _("Ask an operator to restart the node's container runtime, or to drain the node.")
    return Diagnosis("node_lost", sentence, "problem", "operator", step, quoted(*messages))


def _node_lost(pod: Pod, evidence: tuple[str, ...], silent: timedelta | None = None) -> Diagnosis:
    """Explain a pod whose node has been silent, for at least that time, or is gone (None)."""
    who: Who = "operator"
    sentence, step = _("{node} no longer answers."), _("If it does not come back soon, launch this again; {kept}")
    if silent is None:
        who, sentence, step = "you", _("{node} no longer exists."), _("Launch this again; {kept}")
    elif silent >= _GIVEN_UP:
        sentence = _("{node} has not answered for {silent}.")
        step = _(
            "Launch this again; {kept} Ask an operator to restart the node, or to delete it, which frees its volumes."
        )
    node = _("Node {node}", node=pod.spec.node_name) if pod.spec.node_name else _("Its node")
    sentence = sentence.format(node=node, silent=duration(silent or timedelta(0)))
    return Diagnosis("node_lost", sentence, "problem", who, step.format(kept=_KEPT), evidence)


def _node_deleted(pod: Pod) -> Diagnosis:
    """Explain a pod that the API server still shows as it was: the garbage collector removes it after a minute or so."""
    words = _("Node {node} was deleted from the cluster; what ran there is removed soon.", node=pod.spec.node_name)
    step = _("Stop it and launch it again; the project's files are kept. Ask an operator why the node was deleted.")
    return Diagnosis("node_lost", words, "problem", "you", step)
