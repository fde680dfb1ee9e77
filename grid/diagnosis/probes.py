"""Explains probes: a program that does not answer yet, and one that was restarted because it failed its liveness probe."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from grid.diagnosis.diagnosis import Diagnosis, latest, quoted, since
from grid.diagnosis.parts import part_of, spec_of, subject
from grid.kube.objects import ContainerStatus, Event, Pod, Running, Terminated
from grid.wording import duration

_START_IS_SLOW = timedelta(minutes=5)
_CLOCKS_DIFFER = timedelta(seconds=5)
_KILLING_PROBES = ("liveness", "startup")
_BY_SIGNAL = (137, 143)  # how a program ends that the kubelet kills


def explain_unanswered(
    pod: Pod, status: ContainerStatus, running: Running, events: Sequence[Event], *, now: datetime
) -> Diagnosis:
    """Explain a container that runs and is not ready, with the port that its probe asks."""
    waited = since(running.started_at, now)
    failures = [one for one in events if one.message.startswith(("Readiness probe", "Startup probe"))]
    probe = latest(failures, "Unhealthy")
    evidence = quoted(probe.message if probe else "")
    port = _port(pod, status)
    where = f" on port {port}" if port else ""
    if waited < _START_IS_SLOW:
        sentence = f"{subject(pod, status)} is starting and does not answer{where} yet."
        return Diagnosis("starting", sentence, "wait", "", "", evidence)
    runs = "Running" if part_of(pod, status) == "program" else f"{subject(pod, status)} has been running"
    sentence = f"{runs} for {duration(waited)} without answering{where}."
    step = "Look at its log; stop it and launch it again if it hangs."
    return Diagnosis("not_answering", sentence, "problem", "you", step, evidence)


def failed_probe(status: ContainerStatus, ended: Terminated, events: Sequence[Event]) -> tuple[str, tuple[str, ...]]:
    """Return the probe for whose failure the kubelet ended this run of the container, with the evidence; "" when there was none."""
    during = [event for event in events if _is_during(event, ended)]
    for probe in _KILLING_PROBES:
        said = f"{probe.capitalize()} probe failed"
        failure = next((one.message for one in reversed(during) if one.message.startswith(said)), "")
        killed = any(one.message.startswith(f"Container {status.name} failed {probe} probe") for one in during)
        if killed or (failure and ended.exit_code in _BY_SIGNAL):
            return probe, quoted(failure, f"exit code {ended.exit_code}")
    return "", ()


def _is_during(event: Event, ended: Terminated) -> bool:
    """Return True when the event happened during the run that has ended; equal events are counted in one that spans all of them."""
    last, first = event.last_seen, event.first_timestamp or event.last_seen
    if last is None or first is None or ended.finished_at is None:
        return False
    began = ended.started_at or ended.finished_at - _START_IS_SLOW
    return began <= last and first <= ended.finished_at + _CLOCKS_DIFFER


def _port(pod: Pod, status: ContainerStatus) -> int | str:
    spec = spec_of(pod, status)
    probe = spec.readiness_probe if status.started or spec.startup_probe is None else spec.startup_probe
    return probe.port if probe else 0
