"""Explains the state of a container to the person whose program runs in it."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from grid.diagnosis.diagnosis import Diagnosis, latest, quoted, since
from grid.diagnosis.exits import (
    NEVER_STARTED,
    cause_words,
    exit_words,
    explain_by_log,
    explain_no_start,
    who_can_repair,
)
from grid.diagnosis.images import PULL_FAILED, explain_pull
from grid.diagnosis.mounts import MOUNT_FAILED, explain_missing, explain_mount
from grid.diagnosis.parts import part_of, spec_of, subject
from grid.diagnosis.probes import explain_unanswered, failed_probe
from grid.kube.objects import ContainerStatus, Event, Pod, Running, Terminated
from grid.quantity import format_bytes, whole
from grid.wording import duration, plural

OUT_OF_MEMORY = "out_of_memory"
_NOT_MADE = frozenset(
    {"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "StartError", "ContainerCannotRun"}
)
_RESTART_IS_NEWS = timedelta(minutes=10)
_PROBE_ADVICE = "See the previous run's log: it hung, or was too busy to answer in time."
_MEMORY_ADVICE = "Choose a tier with more memory, or work on less data at once."


def explain_waiting(pod: Pod, status: ContainerStatus, events: Sequence[Event], *, now: datetime) -> Diagnosis:
    """Explain a container that has not started."""
    waiting = status.state.waiting
    reason, message = (waiting.reason, waiting.message) if waiting else ("", "")
    if reason in PULL_FAILED:
        return explain_pull(spec_of(pod, status).image, status, events)
    if reason == "CrashLoopBackOff":
        return _crash_loop(pod, status, message, events)
    if reason in _NOT_MADE:
        missing = explain_missing(message, subject(pod, status), reason=reason)
        if missing is not None:
            return missing
        return explain_no_start(pod, status, message, reason=reason)
    return _preparing(pod, status, events, now)


def explain_terminated(pod: Pod, status: ContainerStatus, ended: Terminated) -> Diagnosis:
    """Explain a container that has ended and is not being restarted."""
    if ended.reason == "OOMKilled":
        return _out_of_memory(pod, status, ended)
    if ended.reason in NEVER_STARTED:
        return explain_no_start(pod, status, ended.message, reason=ended.reason)
    evidence = quoted(ended.message, f"exit code {ended.exit_code}" + (f" ({ended.reason})" if ended.reason else ""))
    if ended.exit_code == 0:
        return Diagnosis("completed", "The program ended by itself, without an error.", "ok", "", "", evidence)
    who, step = who_can_repair(pod, status, ended)
    code = "setup_failed" if part_of(pod, status) == "setup" else "exit_code"
    sentence = f"{subject(pod, status)} ended with an error: {exit_words(ended)}.{cause_words(ended)}"
    known = explain_by_log(ended)
    evidence = quoted(known.line, *evidence) if known else evidence
    return Diagnosis(code, sentence, "problem", who, step, evidence)


def explain_running(
    pod: Pod, status: ContainerStatus, running: Running, events: Sequence[Event], *, now: datetime
) -> Diagnosis:
    """Explain a started container, whether it is ready yet or not."""
    last = status.last_state.terminated
    if last is not None and since(last.finished_at, now) >= _RESTART_IS_NEWS:
        last = None
    if last is not None and last.reason == "OOMKilled":
        found = _out_of_memory(pod, status, last)
        return replace(found, sentence=f"{found.sentence} It was restarted.")
    if part_of(pod, status) == "setup":
        return _setting_up(pod, status, running, now)
    who = subject(pod, status).replace("The program", "Program")
    probe, evidence = failed_probe(status, last, events) if last is not None else ("", ())
    if last is not None and probe:
        sentence = f"{who} restarted {duration(since(last.finished_at, now))} ago: it failed its {probe} probe."
        return Diagnosis("probe", sentence, "problem", "you", _PROBE_ADVICE, evidence)
    if not status.ready:
        return explain_unanswered(pod, status, running, events, now=now)
    if last is not None:
        ago = duration(since(last.finished_at, now))
        return Diagnosis(
            "restarted", f"{who} restarted {ago} ago: {exit_words(last)}.{cause_words(last)}",
            "problem", "you", "See the previous run's log.", quoted(last.message),
        )  # fmt: skip
    return Diagnosis("running", "Running.", "ok", "")


def _setting_up(pod: Pod, status: ContainerStatus, running: Running, now: datetime) -> Diagnosis:
    """Explain a setup step that runs: it answers nobody and may run long."""
    sentence = f"{subject(pod, status)} is running, for {duration(since(running.started_at, now))} so far"
    last = status.last_state.terminated
    if not status.restart_count or last is None:
        return Diagnosis("setup", f"{sentence}.", "wait", "")
    sentence = f"{sentence}, after {plural(status.restart_count, 'restart')}: {exit_words(last)}."
    who, step = who_can_repair(pod, status, last)
    return Diagnosis("setup", sentence, "problem", who, step, quoted(last.message))


def _preparing(pod: Pod, status: ContainerStatus, events: Sequence[Event], now: datetime) -> Diagnosis:
    mount = latest(events, *MOUNT_FAILED)
    moved_on = latest(events, "Pulling", "Pulled", "Created", "Started")
    if mount is not None and (moved_on is None or events.index(mount) > events.index(moved_on)):
        return explain_mount(mount.message)
    sandbox = latest(events, "FailedCreatePodSandBox")
    if sandbox is not None and moved_on is None:
        return Diagnosis("sandbox", "The node cannot set up the container's network or sandbox.",
                         "problem", "operator", "Ask an operator to look at the node.", quoted(sandbox.message))  # fmt: skip
    if moved_on is not None and moved_on.reason == "Pulling":
        waited = duration(since(moved_on.last_seen, now))
        image = spec_of(pod, status).image
        return Diagnosis(
            "pulling", f"The node downloads the image {image}, for {waited} so far; next time it is cached there.",
            "wait", "", "Nothing to do: it starts by itself.", quoted(moved_on.message),
        )  # fmt: skip
    return Diagnosis("preparing", "The node is preparing the container: volumes, network, image.", "wait", "")


def _crash_loop(pod: Pod, status: ContainerStatus, message: str, events: Sequence[Event]) -> Diagnosis:
    last = status.last_state.terminated
    if last is not None and last.reason == "OOMKilled":
        found = _out_of_memory(pod, status, last)
        evidence = (*found.evidence, *quoted(message))
        return replace(found, sentence=f"{found.sentence} It will be restarted.", evidence=evidence)
    if last is not None and last.reason in NEVER_STARTED:
        found = explain_no_start(pod, status, last.message, reason=last.reason)
        return replace(found, sentence=f"{found.sentence} It is tried again after a pause.")
    why = f": {exit_words(last)}" if last else ""
    who, step = who_can_repair(pod, status, last)
    verb = "failing" if part_of(pod, status) == "setup" else "crashing"
    count = f" ({plural(status.restart_count, 'restart')})" if status.restart_count else ""
    probe, evidence = failed_probe(status, last, events) if last is not None else ("", ())
    if probe:
        sentence = f"{subject(pod, status)} is restarted again and again{count}: it fails its {probe} probe."
        return Diagnosis("probe", sentence, "problem", "you", _PROBE_ADVICE, (*evidence, *quoted(message)))
    return Diagnosis(
        "crash_loop",
        f"{subject(pod, status)} keeps {verb}{count}{why}.{cause_words(last)} It is started again after a pause.",
        "problem", who, step, quoted(last.message if last else "", message),
    )  # fmt: skip


def _out_of_memory(pod: Pod, status: ContainerStatus, ended: Terminated) -> Diagnosis:
    spec, name = spec_of(pod, status), subject(pod, status)
    evidence = quoted(ended.message, f"OOMKilled, exit code {ended.exit_code}")
    text = spec.resources.limits.get("memory") or pod.spec.resources.limits.get("memory")
    if not text and spec in (*pod.spec.containers, *pod.spec.init_containers):
        sentence = f"The node ran out of memory and ended {name[0].lower()}{name[1:]}, which has no memory limit."
        step = "Choose a tier with more memory, or ask an operator what else runs on the node."
        return Diagnosis(OUT_OF_MEMORY, sentence, "problem", "you", step, evidence)
    limit = f" of {format_bytes(whole(text))}" if text else ""
    sentence = f"{name} used more memory than its limit{limit} and was ended."
    return Diagnosis(OUT_OF_MEMORY, sentence, "problem", "you", _MEMORY_ADVICE, evidence)
