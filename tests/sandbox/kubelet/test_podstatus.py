"""Rules of the kubelet without any process: phases, conditions, back-off, durations."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from grid.sandbox.kubelet.backoff import Delays, RestartBackoff, spell
from grid.sandbox.kubelet.podstatus import (
    ContainerRole,
    ContainerView,
    PodFrame,
    PodVerdict,
    WaitingReason,
    build_status,
    phase_of,
)
from grid.sandbox.kubelet.runtime import Attempt, Exit, PodIdentity, ResolvedContainer

NOW = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
CRASHING = WaitingReason("CrashLoopBackOff", "back-off 10s")
PULLING = WaitingReason("ErrImagePull", "not there")


def attempt(code: int | None = None) -> Attempt:
    spec = ResolvedContainer(PodIdentity("u", "ns", "p"), "c", 0, "image:1", "image@sha256:0", ["x"], {}, "/")
    ending = None if code is None else Exit(code, "Completed" if code == 0 else "Error", "", NOW)
    return Attempt(spec, "u.c.0", NOW, Path("/nowhere"), ending)


def view(
    name: str = "c",
    role: ContainerRole = ContainerRole.MAIN,
    *,
    code: int | None = None,
    runs: bool = False,
    **more: object,
) -> ContainerView:
    current = attempt(code) if runs or code is not None else None
    return ContainerView(name, role, "image:1", "", current=current, started=runs, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("containers", "policy", "phase"),
    [
        ([view()], "Always", "Pending"),
        ([view(waiting=PULLING)], "Never", "Pending"),
        ([view(runs=True)], "Never", "Running"),
        ([view("a", runs=True), view("b", waiting=PULLING)], "Always", "Pending"),
        ([view("a", runs=True), view("b", code=1)], "Never", "Running"),
        ([view(code=0)], "Never", "Succeeded"),
        ([view(code=0)], "Always", "Running"),
        ([view(code=0)], "OnFailure", "Succeeded"),
        ([view(code=1)], "OnFailure", "Running"),
        ([view("a", code=0), view("b", code=1)], "Never", "Failed"),
        ([view(code=1, waiting=CRASHING)], "Always", "Running"),
        ([view("i", ContainerRole.INIT, runs=True), view()], "Never", "Pending"),
        ([view("i", ContainerRole.INIT, code=1), view()], "Never", "Failed"),
        ([view("i", ContainerRole.INIT, code=1, waiting=CRASHING), view()], "OnFailure", "Pending"),
        ([view("s", ContainerRole.SIDECAR, runs=True), view(code=0)], "Never", "Running"),
        ([view("s", ContainerRole.SIDECAR, code=143), view(code=0)], "Never", "Succeeded"),
        ([view("s", ContainerRole.SIDECAR, code=143), view(code=1)], "Never", "Failed"),
        ([view("s", ContainerRole.SIDECAR), view()], "Never", "Pending"),
    ],
)
def test_the_phase_is_what_kubernetes_would_say(containers: list[ContainerView], policy: str, phase: str) -> None:
    assert phase_of(containers, policy) == phase


def frame(**more: object) -> PodFrame:
    return PodFrame("Always", NOW, "127.32.0.1", pod_ip="127.64.0.1", set_up=True, **more)  # type: ignore[arg-type]


def test_a_time_moves_only_when_its_fact_changes() -> None:
    first = build_status(frame(), [view(runs=True, ready=True)], {}, NOW)
    assert build_status(frame(), [view(runs=True, ready=True)], first, NOW + timedelta(minutes=5)) == first
    unready = build_status(frame(), [view(runs=True)], first, NOW + timedelta(minutes=5))
    times = {item["type"]: item["lastTransitionTime"] for item in unready["conditions"]}
    assert (times["Ready"], times["Initialized"]) == ("2026-11-21T09:05:00Z", "2026-11-21T09:00:00Z")


def test_foreign_status_fields_are_preserved() -> None:
    gate = {"type": "example.org/gate", "status": "True"}
    status = build_status(frame(), [view(runs=True)], {"qosClass": "Burstable", "conditions": [gate]}, NOW)
    assert status["qosClass"] == "Burstable"
    assert gate in status["conditions"]


def test_crash_loop_shows_last_end_as_last_state() -> None:
    status = build_status(frame(), [view(code=1, waiting=CRASHING, message="boom")], {}, NOW)
    container = status["containerStatuses"][0]
    assert container["state"] == {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}
    assert container["lastState"]["terminated"]["message"] == "boom"


def test_a_verdict_is_above_what_the_containers_say() -> None:
    verdict = PodVerdict("Failed", "DeadlineExceeded", "too long")
    status = build_status(frame(verdict=verdict), [view(code=0)], {}, NOW)
    assert (status["phase"], status["reason"], status["message"]) == ("Failed", "DeadlineExceeded", "too long")


def test_an_unfinished_init_container_is_named() -> None:
    status = build_status(frame(), [view("setup", ContainerRole.INIT, runs=True), view("run")], {}, NOW)
    conditions = {item["type"]: item for item in status["conditions"]}
    assert conditions["Initialized"]["message"] == "containers with incomplete status: [setup]"
    assert conditions["Ready"]["message"] == "containers with unready status: [run]"
    assert status["containerStatuses"][0]["state"] == {"waiting": {"reason": "PodInitializing"}}


def test_first_restart_is_immediate_and_later_ones_slower() -> None:
    backoff = RestartBackoff(Delays())
    pauses = []
    now = NOW
    for _ in range(8):
        ready = backoff.ready_at(now)
        pauses.append((ready - now).total_seconds())
        backoff.started(now, ready)
        now = ready + timedelta(seconds=1)
    assert pauses == [0, 10, 20, 40, 80, 160, 300, 300]


def test_a_long_good_run_is_forgiven() -> None:
    backoff = RestartBackoff(Delays())
    for second in range(5):
        backoff.started(NOW + timedelta(seconds=second), NOW + timedelta(seconds=second))
    much_later = NOW + timedelta(minutes=11)
    assert backoff.ready_at(much_later) == much_later
    backoff.started(much_later, much_later)
    assert backoff.seconds == 10


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(10, "10s"), (80, "1m20s"), (300, "5m0s"), (3661, "1h1m1s"), (1.203, "1.203s"), (0.045, "45ms"), (12.3, "12.3s")],
)
def test_durations_are_spelled_as_go_does(seconds: float, text: str) -> None:
    assert spell(seconds) == text
