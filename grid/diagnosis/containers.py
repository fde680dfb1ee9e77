"""Explains the state of a container to the person whose program runs in it."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from grid.core.labels import APP_COMPONENT, HEAD, KEYS, WORKER
from grid.core.quantity import format_bytes
from grid.core.regexes import Expression
from grid.core.translation import gettext as _
from grid.core.wording import duration, folded, plural
from grid.diagnosis.beside import PROGRAM, is_about, part_of, programs, spec_of, subject, within
from grid.diagnosis.diagnosis import Diagnosis, Who, latest, quoted, since
from grid.diagnosis.disruptions import end_requested_by
from grid.diagnosis.exits import (
    NEVER_STARTED,
    NOT_LOCATED,
    cause_words,
    exit_words,
    explain_no_start,
    telling_line,
    who_can_repair,
)
from grid.diagnosis.images import PULL_FAILED, explain_pull
from grid.diagnosis.mounts import MOUNT_FAILED, explain_missing, explain_mounts
from grid.diagnosis.nodefaults import LOOK_AT_NODE, fault_of
from grid.diagnosis.probes import CORRECT_HOOK, explain_unanswered, failed_probe, not_ready_words, probe_message
from grid.diagnosis.resources import resource_amount
from grid.diagnosis.rules import core_words, most_telling
from grid.diagnosis.startup import true_since
from grid.kube.objects import ContainerStatus, Event, Pod, Running, Terminated, true_condition

OUT_OF_MEMORY = "out_of_memory"
_NOT_MADE = {"CreateContainerConfigError", "CreateContainerError", "RunContainerError", *NEVER_STARTED}
# What the kubelet says while nothing is wrong; "" before it has said anything.
_NORMAL = frozenset({"", "ContainerCreating", "PodInitializing"})
# Warnings that keep no container from starting, the last one of Kyverno's audits.
_HARMLESS = {"DNSConfigForming", "MissingClusterDNS", "FailedToRetrieveImagePullSecret", "Unhealthy", "BackOff", "FailedScheduling",
             "PolicyViolation"}  # fmt: skip
_SHOW = _("Show an operator the messages below.")
_NO_DEVICE_DRIVER = Expression(r"(?:DRA driver|plugin(?: name)?) (\S+) (?:is not|not found in the list of) registered")
# Setup steps that only wait until something else is up: those of operators (KubeRay's wait-gcs-ready, the training operator's
# init-pytorch) and of people are named so.
_WAITS = Expression(r"(?i)\bwait|-ready\b|^init-pytorch$")
_UP_BY_THEN = timedelta(minutes=2)
_OF_OPERATORS = ("ray.io/cluster", "training.kubeflow.org/job-name")  # labels of workers that wait for a head
_NODE_IS_NEW, _PREPARED_BY_THEN = timedelta(minutes=5), timedelta(minutes=15)
_PULLED_BY_THEN = timedelta(minutes=30)
_RESTART_IS_NEWS = timedelta(minutes=10)
# The steps of a start in which the kubelet's events tell how far a container is; its volumes and the pod's network come before them.
_STEPS = {
    "Pulling": "",
    "Pulled": _("The image is on the node; the container is being created."),
    "Created": _("The container is created and is being started."),
    "Started": _("The container was started; the node has not reported yet that it runs."),
}


def explain_waiting(pod: Pod, status: ContainerStatus, events: Sequence[Event], *, now: datetime) -> Diagnosis:
    """Explain a container that has not started."""
    waiting = status.state.waiting
    reason, message = (waiting.reason, waiting.message) if waiting else ("", "")
    if reason in PULL_FAILED:
        return explain_pull(spec_of(pod, status).image, status, events)
    if reason == "CrashLoopBackOff":
        return _crash_loop(pod, status, message, events)
    if reason in _NOT_MADE:
        if not core_words(message):
            own = [event.message for event in events if event.reason == "Failed" and is_about(event, status)]
            message = most_telling([*(text for text in own if "mage" not in text), message])
        missing = explain_missing(message, subject(pod, status), reason=reason)
        return missing or explain_no_start(pod, status, message, reason=reason)
    if reason in _NORMAL:
        return _preparing(pod, status, events, now)
    if reason == "PostStartHookError":
        says = folded(message.rpartition(" - error: ")[2])
        sentence = _("{program} is ended as its postStart hook fails: {says}.", program=subject(pod, status), says=says)
        return Diagnosis("probe", sentence, "problem", "you", CORRECT_HOOK, quoted(message))
    # No rule knows what it waits for: what the node says of it stands in the sentence.
    says = f" ({reason}): {folded(message)}" if message.strip() else f": {reason}"
    sentence = _("{program} cannot be started{says}.", program=subject(pod, status), says=says)
    evidence = quoted(f"{reason}: {message}" if message else reason)
    return Diagnosis("container", sentence, "problem", "operator", _SHOW, evidence)


def explain_terminated(pod: Pod, status: ContainerStatus, ended: Terminated) -> Diagnosis:
    """Explain a container that has ended and is not being restarted."""
    # With exit code 0 the runtime counted another process of the container, and the program itself ended well.
    if ended.reason == "OOMKilled" and ended.exit_code:
        return _out_of_memory(pod, status, ended)
    if ended.reason in NEVER_STARTED:
        return explain_no_start(pod, status, ended.message, reason=ended.reason)
    if ended.reason in NOT_LOCATED:
        sentence = _(
            "It is not known how {program} ended: its node found the container no more, as after a restart of the node."
        )
        sentence = sentence.format(program=within(pod, status))
        who, step = who_can_repair(pod, status, ended)
        return Diagnosis("end_unknown", sentence, "problem", who, step, quoted(ended.reason, ended.message))
    reason = f" ({ended.reason})" if ended.reason else ""
    evidence = quoted(ended.message, _("exit code {exit_code}", exit_code=ended.exit_code) + reason)
    if ended.exit_code == 0:
        why = end_requested_by(pod, ended)
        sentence = _("The program ended by itself, without an error.")
        if why:
            sentence = _("The program was asked to end because {why}, and ended without an error.", why=why)
        if ended.reason == "OOMKilled":
            sentence = _("{sentence} One of its processes had run out of memory.", sentence=sentence)
        return Diagnosis("completed", sentence, "ok", "", "", evidence)
    who, step = who_can_repair(pod, status, ended)
    code = "setup_failed" if part_of(pod, status) == "setup" else "exit_code"
    end, cause = exit_words(ended, end_requested_by(pod, ended)), cause_words(ended)
    sentence = _("{program} ended with an error: {end}.{cause}", program=subject(pod, status), end=end, cause=cause)
    return Diagnosis(code, sentence, "problem", who, step, quoted(telling_line(ended), *evidence))


def explain_running(
    pod: Pod, status: ContainerStatus, running: Running, events: Sequence[Event], *, now: datetime
) -> Diagnosis:
    """Explain a started container, whether it is ready yet or not."""
    last = status.last_state.terminated
    if last is not None and since(last.finished_at or running.started_at, now) >= _RESTART_IS_NEWS:
        last = None
    if last is not None and last.reason == "OOMKilled" and last.exit_code:
        return _out_of_memory(pod, status, last, then=_("{sentence} It was restarted."))
    if part_of(pod, status) == "setup":
        return _setting_up(pod, status, running, now)
    if last is not None:
        return _restarted(pod, status, running, last, events, now=now)
    if not status.ready:
        why, (who, step) = explain_unanswered(pod, status, running, events, now=now), who_can_repair(pod, status, None)
        return replace(why, who=who, next_step=step) if why.who == "you" and who != "you" else why
    return Diagnosis("running", _("Running."), "ok", "")


def _restarted(
    pod: Pod, status: ContainerStatus, running: Running, last: Terminated, events: Sequence[Event], *, now: datetime
) -> Diagnosis:
    """Explain a container that runs again, ready or not, by the end of its previous run `last`."""
    who, at = subject(pod, status), last.finished_at or running.started_at
    restarted = _("{program} restarted {time} ago") if at else _("{program} was restarted")
    program = _("Program") if part_of(pod, status) == "program" and len(programs(pod)) < 2 else who
    who = restarted.format(program=program, time=duration(since(at, now)))
    message = "" if status.ready else probe_message(status, running, events)
    unready = "" if status.ready else _(" It {answers}.", answers=not_ready_words(pod, status, message))
    probe = failed_probe(status, last, events)
    if probe is not None:
        sentence = _("{restarted}: it failed its {probe}{unready}", restarted=who, probe=probe.words, unready=unready)
        return Diagnosis("probe", sentence, "problem", "you", probe.next_step, (*probe.evidence, *quoted(message)))
    sentence = f"{who}: {exit_words(last)}.{cause_words(last)}{unready}"
    repair: tuple[Who, str] = "you", _("See the previous run's log.")
    if last.reason in NOT_LOCATED:
        repair = "operator", _("Nothing to do: it runs again. If it happens often, show an operator the node.")
    return Diagnosis("restarted", sentence, "problem", *repair, quoted(telling_line(last), last.message, message))


def _setting_up(pod: Pod, status: ContainerStatus, running: Running, now: datetime) -> Diagnosis:
    """Explain a setup step that runs: it answers nobody and may run long."""
    time, last = duration(since(running.started_at, now)), status.last_state.terminated
    sentence = _("{program} is running, for {time} so far", program=subject(pod, status), time=time)
    if _WAITS.search(status.name) and since(running.started_at, now) > _UP_BY_THEN:
        return _waiting_for_another(pod, status, sentence)
    if not status.restart_count or last is None:
        is_long = since(running.started_at, now) > _PREPARED_BY_THEN
        return Diagnosis("setup", f"{sentence}.", "wait", "", who_can_repair(pod, status, None)[1] if is_long else "")
    restarts = plural(status.restart_count, "restart", "restarts")
    sentence = _("{running}, after {restarts}: {end}.", running=sentence, restarts=restarts, end=exit_words(last))
    who, step = who_can_repair(pod, status, last)
    return Diagnosis("setup", sentence, "problem", who, step, quoted(last.message))


def _waiting_for_another(pod: Pod, status: ContainerStatus, running: str) -> Diagnosis:
    labels = pod.metadata.labels
    if labels.get(APP_COMPONENT) == WORKER or any(label in labels for label in _OF_OPERATORS):
        sentence = _("{running}: it waits until the head of its cluster is up.", running=running)
        step = _("See why the head's pod is not up and answering; the log of container {name} says what it tries.")
    else:
        sentence = _("{running}: it waits until something else, as a service, is up.", running=running)
        step = _(
            "See in the log of container {name} what it waits for, and whether that runs; if it is not yours, ask your admin."
        )
    return Diagnosis("setup", sentence, "wait", "you", step.format(name=status.name))


def _preparing(pod: Pod, status: ContainerStatus, events: Sequence[Event], now: datetime) -> Diagnosis:
    """Volumes and network are the pod's, so any container's progress shows that they are there; the image is the container's own."""
    moved_on, waited = latest(events, *_STEPS), since(true_since(pod, "PodScheduled"), now)
    done = latest(events, *_STEPS, "SuccessfulAttachVolume")
    after = events if done is None else events[events.index(done) + 1 :]
    # The kubelet makes the sandbox once all volumes are there: what kept them before is over.
    sandbox = latest(after, "FailedCreatePodSandBox")
    of_volumes = after if sandbox is None else after[after.index(sandbox) + 1 :]
    if mounts := [event for event in of_volumes if event.reason in MOUNT_FAILED]:
        is_of_cluster = pod.metadata.labels.get(APP_COMPONENT) in (HEAD, WORKER)
        return explain_mounts(mounts, waited, pod.metadata.labels.get(KEYS.execution, "") if is_of_cluster else "")
    if moved_on is None and (warning := _last_warning(after)) is not None:
        return _kept_by_node(warning, waited)
    last = status.last_state.terminated
    before = last.finished_at if last is not None else None
    this_run = [event for event in events if before is None or event.last_seen is None or event.last_seen >= before]
    own = latest([event for event in this_run if is_about(event, status)], *_STEPS)
    if own is not None and own.reason == "Pulling":
        waited = since(own.last_seen, now)
        so_far = _(", for {waited} so far", waited=duration(waited)) if waited >= timedelta(seconds=1) else ""
        sentence = _("The node downloads the image {image}{so_far}; next time it is cached there.")
        sentence = sentence.format(image=spec_of(pod, status).image, so_far=so_far)
        step = _("Nothing to do: it starts by itself.")
        if waited > _PULLED_BY_THEN:
            step = _(
                "If it does not end, ask an operator whether the node's connection to the registry is slow or hangs."
            )
        return Diagnosis("pulling", sentence, "wait", "", step, quoted(own.message))
    if own is not None:
        return Diagnosis("preparing", _STEPS[own.reason], "wait", "", "", quoted(own.message))
    if waited > _PREPARED_BY_THEN and not (moved_on or last or true_condition(pod, "PodReadyToStartContainers")):
        sentence = _("The node has prepared nothing of this for {time}.", time=duration(waited))
        step = _("Ask an operator to look at its kubelet and container runtime, or stop this and launch it again.")
        return Diagnosis("preparing", sentence, "problem", "operator", step)
    sentence = _("The node is preparing the container: volumes, network, image.")
    if moved_on is not None:
        sentence = _("The node is preparing the container; the pod's volumes and network are ready.")
    return Diagnosis("preparing", sentence, "wait", "")


def _last_warning(events: Sequence[Event]) -> Event | None:
    """Return the last warning that says why a node starts no pod; what only sums up ("Error syncing pod") says less."""
    since_bound = latest(events, "Scheduled")
    after = events[events.index(since_bound) + 1 :] if since_bound is not None else events
    warnings = [event for event in after if event.type == "Warning" and event.reason not in _HARMLESS]
    causes = [event for event in warnings if event.reason != "FailedSync"] or warnings
    cause = most_telling([event.message for event in causes]) if causes else ""
    return next((event for event in reversed(causes) if event.message == cause), None)


def _kept_by_node(warning: Event, waited: timedelta) -> Diagnosis:
    # What is not known is quoted from where each runtime has named the sandbox.
    says = folded(warning.message.partition('": ')[2] or warning.message.rpartition("desc = ")[2])
    fault, code = fault_of(warning.message), "sandbox"
    key, why, who, step = (
        (fault.key, fault.words, fault.who, fault.next_step) if fault else ("", says, "operator", LOOK_AT_NODE)
    )
    if warning.reason == "FailedCreatePodSandBox" or key == "cgroups":
        sentence = _("The node cannot set up the container's network or sandbox{why}.", why=f": {why}" if why else "")
    elif warning.reason == "NetworkNotReady" and timedelta(0) < waited < _NODE_IS_NEW:
        sentence, step = _("The network of the node is still coming up."), _("Nothing to do: it starts by itself.")
        return Diagnosis(code, sentence, "wait", "", step, quoted(warning.message))
    elif warning.reason == "NetworkNotReady":
        sentence = _("The network of the node is not ready.")
    elif driver := _NO_DEVICE_DRIVER.search(warning.message):
        sentence = _("The device driver {name} does not run on the node.", name=driver[1])
        step = _("Ask an operator to start it there; launched again, this may get another node.")
    else:
        code, why, step = ("container", why, step) if fault else ("container", folded(warning.message), _SHOW)
        sentence = _("The node cannot start it ({reason}): {says}.", reason=warning.reason, says=why)
    return Diagnosis(code, sentence, "problem", who, step, quoted(warning.message))


def _crash_loop(pod: Pod, status: ContainerStatus, message: str, events: Sequence[Event]) -> Diagnosis:
    last = status.last_state.terminated
    if last is not None and last.reason == "OOMKilled" and last.exit_code:
        return _out_of_memory(pod, status, last, message, then=_("{sentence} It will be restarted."))
    if last is not None and last.reason in NEVER_STARTED:
        why_not = explain_no_start(pod, status, last.message, reason=last.reason)
        return replace(why_not, sentence=_("{sentence} It is tried again after a pause.", sentence=why_not.sentence))
    why = f": {exit_words(last)}" if last else ""
    who, step = who_can_repair(pod, status, last)
    count = f" ({plural(status.restart_count, 'restart', 'restarts')})" if status.restart_count else ""
    if last is not None and (probe := failed_probe(status, last, events)) is not None:
        sentence = _("{program} is restarted again and again{restarts}: it fails its {probe}")
        sentence = sentence.format(program=subject(pod, status), restarts=count, probe=probe.words)
        return Diagnosis("probe", sentence, "problem", "you", probe.next_step, (*probe.evidence, *quoted(message)))
    if last is not None and last.exit_code == 0:
        sentence = _("{program} ends by itself, without an error, and is started again each time{restarts}.")
        sentence = sentence.format(program=subject(pod, status), restarts=count)
        step = _("It has to keep running: see the end of its log for why it ends.")
        return Diagnosis("ends_again", sentence, "problem", who, step, quoted(last.message, message))
    sentence = _("{program} keeps crashing{restarts}{why}.{cause} It is started again after a pause.")
    if part_of(pod, status) == "setup":
        sentence = _("{program} keeps failing{restarts}{why}.{cause} It is started again after a pause.")
    sentence = sentence.format(program=subject(pod, status), restarts=count, why=why, cause=cause_words(last))
    says = (telling_line(last), last.message) if last else ()
    return Diagnosis("crash_loop", sentence, "problem", who, step, quoted(*says, message))


def _out_of_memory(
    pod: Pod, status: ContainerStatus, ended: Terminated, message: str = "", *, then: str = "{sentence}"
) -> Diagnosis:
    """Explain a container that was ended for its memory; `message` is quoted as well, and `then` is the sentence with what followed."""
    spec, killed = spec_of(pod, status), _("OOMKilled, exit code {exit_code}", exit_code=ended.exit_code)
    evidence = quoted(ended.message, killed, message)
    who: Who = "you"
    text = spec.resources.limits.get("memory") or pod.spec.resources.limits.get("memory")
    if not text and spec in (*pod.spec.containers, *pod.spec.init_containers):
        program = within(pod, status)
        sentence = _("The node ran out of memory and ended {program}, which has no memory limit.", program=program)
        step = _("Choose a tier with more memory, or ask an operator what else runs on the node.")
    else:
        size, program = resource_amount("memory", text or ""), subject(pod, status)
        limit = _(" of {size}", size=format_bytes(size)) if size else ""
        sentence = _("{program} used more memory than its limit{limit} and was ended.", program=program, limit=limit)
        step = _("Choose a tier with more memory, or work on less data at once.")
        main = next((each for each in pod.status.container_statuses if each.name == PROGRAM), status)
        if main is not status:
            who, step = "admin", _("Ask your admin to raise the memory limit of container {name}.", name=status.name)
            if main.state.terminated is not None and not main.state.terminated.exit_code:
                sentence = _("{sentence} The program itself ended without an error.", sentence=sentence)
    return Diagnosis(OUT_OF_MEMORY, then.format(sentence=sentence), "problem", who, step, evidence)
