"""Explains the state of a container to the person whose program runs in it."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from grid.diagnosis.diagnosis import Diagnosis, Who, latest, quoted, since
from grid.kube.objects import ContainerSpec, ContainerStatus, Event, Pod, Running, Terminated
from grid.quantity import format_bytes, whole
from grid.wording import duration

_PULL_FAILED = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable"}
)
_NOT_MADE = frozenset(
    {"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "StartError", "ContainerCannotRun"}
)
_MOUNT_FAILED = ("FailedMount", "FailedAttachVolume", "FailedMapVolume")
_START_IS_SLOW = timedelta(minutes=5)
_RESTART_IS_NEWS = timedelta(minutes=10)
_EXIT_CODES = {
    126: "its command may not be executed",
    127: "its command was not found",
    134: "it aborted",
    137: "it was killed",
    139: "it crashed (segmentation fault)",
    143: "it was asked to end",
}
_MEMORY_ADVICE = "Choose a tier with more memory, or work on less data at once."


def explain_waiting(pod: Pod, status: ContainerStatus, events: Sequence[Event], *, now: datetime) -> Diagnosis:
    """Explain a container that has not started."""
    waiting = status.state.waiting
    reason, message = (waiting.reason, waiting.message) if waiting else ("", "")
    if reason in _PULL_FAILED:
        failed = latest(events, "Failed", "InspectFailed")
        return Diagnosis(
            "image",
            f"The image {_spec_of(pod, status).image} cannot be downloaded: {_why_no_image(message, failed)}.",
            "problem", "admin", "Ask your admin to check the environment's image.",
            quoted(message, failed.message if failed else ""),
        )  # fmt: skip
    if reason == "CrashLoopBackOff":
        return _crash_loop(pod, status, message)
    if reason in _NOT_MADE:
        return Diagnosis(
            "container", "The container cannot be started as its environment says.",
            "problem", "admin", "Ask your admin to check the environment.", quoted(f"{reason}: {message}"),
        )  # fmt: skip
    return _preparing(pod, status, events, now)


def explain_terminated(pod: Pod, status: ContainerStatus, ended: Terminated) -> Diagnosis:
    """Explain a container that has ended and is not being restarted."""
    if ended.reason == "OOMKilled":
        return _out_of_memory(pod, status, ended)
    evidence = quoted(ended.message, f"exit code {ended.exit_code}" + (f" ({ended.reason})" if ended.reason else ""))
    if ended.exit_code == 0:
        return Diagnosis("completed", "The program has ended by itself, without an error.", "ok", "", "", evidence)
    who, step = _who_can_repair(ended.exit_code)
    return Diagnosis("exit_code", f"The program ended with an error: {_exit(ended)}.", "problem", who, step, evidence)


def explain_running(
    pod: Pod, status: ContainerStatus, running: Running, events: Sequence[Event], *, now: datetime
) -> Diagnosis:
    """Explain a started container, whether it is ready yet or not."""
    last = status.last_state.terminated
    if last is not None and since(last.finished_at, now) >= _RESTART_IS_NEWS:
        last = None
    if last is not None and last.reason == "OOMKilled":
        found = _out_of_memory(pod, status, last)
        return Diagnosis(
            found.code, f"{found.sentence} It was started again.", "problem", "you", found.next_step, found.evidence
        )
    if not status.ready:
        return _not_answering(running, events, now)
    if last is not None:
        return Diagnosis(
            "restarted", f"The program was started again {duration(since(last.finished_at, now))} ago: {_exit(last)}.",
            "problem", "you", "See the previous run's log.", quoted(last.message),
        )  # fmt: skip
    return Diagnosis("running", "Running.", "ok", "")


def _spec_of(pod: Pod, status: ContainerStatus) -> ContainerSpec:
    every = (*pod.spec.init_containers, *pod.spec.containers)
    return next((one for one in every if one.name == status.name), ContainerSpec(name=status.name))


def _preparing(pod: Pod, status: ContainerStatus, events: Sequence[Event], now: datetime) -> Diagnosis:
    mount = latest(events, *_MOUNT_FAILED)
    moved_on = latest(events, "Pulling", "Pulled", "Created", "Started")
    if mount is not None and (moved_on is None or events.index(mount) > events.index(moved_on)):
        used = "Multi-Attach" in mount.message
        sentence = (
            "The project's files are in use on another node, and this volume can be on one node at a time."
            if used
            else "The project's files cannot be attached to the node yet."
        )
        step = "Stop the project's other execution first." if used else "If it lasts, ask an operator."
        return Diagnosis(
            "volume_mount", sentence, "problem", "you" if used else "operator", step, quoted(mount.message)
        )
    sandbox = latest(events, "FailedCreatePodSandBox")
    if sandbox is not None and moved_on is None:
        return Diagnosis("sandbox", "The node cannot set up the container's network or sandbox.",
                         "problem", "operator", "Ask an operator to look at the node.", quoted(sandbox.message))  # fmt: skip
    if moved_on is not None and moved_on.reason == "Pulling":
        waited = duration(since(moved_on.last_seen, now))
        image = _spec_of(pod, status).image
        return Diagnosis(
            "pulling", f"The node downloads the image {image}, for {waited} so far; next time it is there already.",
            "wait", "", "Nothing to do: it starts by itself.", quoted(moved_on.message),
        )  # fmt: skip
    return Diagnosis("preparing", "The node prepares the container: volumes, network, image.", "wait", "")


def _not_answering(running: Running, events: Sequence[Event], now: datetime) -> Diagnosis:
    waited = since(running.started_at, now)
    probe = latest(events, "Unhealthy")
    evidence = quoted(probe.message if probe else "")
    if waited < _START_IS_SLOW:
        return Diagnosis("starting", "The program is starting and does not answer yet.", "wait", "", "", evidence)
    return Diagnosis(
        "not_answering", f"Running for {duration(waited)} without answering.",
        "problem", "you", "Look at its log; stop it and launch it again if it hangs.", evidence,
    )  # fmt: skip


def _crash_loop(pod: Pod, status: ContainerStatus, message: str) -> Diagnosis:
    last = status.last_state.terminated
    if last is not None and last.reason == "OOMKilled":
        found = _out_of_memory(pod, status, last)
        sentence = f"{found.sentence} It will be started again."
        return Diagnosis(found.code, sentence, "problem", "you", found.next_step, (*found.evidence, *quoted(message)))
    why = f": {_exit(last)}" if last else ""
    who, step = _who_can_repair(last.exit_code if last else 1)
    return Diagnosis(
        "crash_loop",
        f"The program keeps crashing ({status.restart_count} restarts){why}. It is started again after a pause.",
        "problem", who, step, quoted(last.message if last else "", message),
    )  # fmt: skip


def _out_of_memory(pod: Pod, status: ContainerStatus, ended: Terminated) -> Diagnosis:
    text = _spec_of(pod, status).resources.limits.get("memory")
    limit = f" of {format_bytes(whole(text))}" if text else ""
    return Diagnosis(
        "out_of_memory", f"The program used more memory than its limit{limit} and was ended.",
        "problem", "you", _MEMORY_ADVICE, quoted(ended.message, f"OOMKilled, exit code {ended.exit_code}"),
    )  # fmt: skip


def _exit(ended: Terminated) -> str:
    known = _EXIT_CODES.get(ended.exit_code)
    return f"exit code {ended.exit_code}" + (f", {known}" if known else "")


def _who_can_repair(exit_code: int) -> tuple[Who, str]:
    if exit_code in (126, 127):
        return "admin", "Ask your admin to check the environment's command."
    return "you", "Look at the end of the log."


def _why_no_image(message: str, failed: Event | None) -> str:
    text = f"{message} {failed.message if failed else ''}".lower()
    if "unauthorized" in text or "forbidden" in text or "denied" in text:
        return "the registry refuses access"
    if "not found" in text or "does not exist" in text or "manifest unknown" in text or "name unknown" in text:
        return "there is no such image"
    if "invalid reference" in text:
        return "its name is not valid"
    return "the registry does not deliver it"
