"""The situations that a person may find a pod in; all that is said of them is in files for people to read."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from grid.diagnosis.diagnosis import Diagnosis
from grid.diagnosis.pods import explain_pod
from grid.kube.objects import Event, Pod
from tests.support.builders import MOMENT, container_status, decode, event, pod, stamp
from tests.support.golden import assert_golden

_OF_WARNINGS = ("Failed", "Unhealthy", "BackOff", "Network", "Inspect")


def ago(seconds: float) -> str:
    return stamp(MOMENT - timedelta(seconds=seconds))


def event_saying(reason: str, message: str, *, seconds: float = 0) -> dict[str, Any]:
    kind = "Warning" if reason.startswith(_OF_WARNINGS) else "Normal"
    return event(
        f"{reason}-{seconds}", reason=reason, message=message, kind=kind, at=MOMENT - timedelta(seconds=seconds)
    )


def on_a_node(state: dict[str, Any] | None = None, *, ready: bool = False, **more: Any) -> dict[str, Any]:
    """`more` is of the container's status."""
    limits = {"requests": {"memory": "4Gi"}, "limits": {"memory": "4Gi"}}
    status = container_status(state=state, ready=ready, **more)
    return pod(
        "p", node="node-1", containers=[{"name": "run", "image": "lab:4", "resources": limits}], statuses=[status]
    )


def ended(exit_code: int, reason: str = "Error", *, seconds: float = 5, **more: Any) -> dict[str, Any]:
    return {"terminated": {"exitCode": exit_code, "reason": reason, "finishedAt": ago(seconds), **more}}


@dataclass(frozen=True)
class Case:
    """`events` are the pod's, oldest first."""

    name: str
    pod: dict[str, Any]
    events: list[dict[str, Any]] = field(default_factory=list)

    def explain(self) -> Diagnosis:
        return explain(self.pod, *self.events)


def as_text(diagnosis: Diagnosis) -> str:
    """The whole diagnosis, a line for each part."""
    who = f" for {diagnosis.who}" if diagnosis.who else ""
    step = f" {diagnosis.next_step}" if diagnosis.next_step else ""
    return "\n".join(
        (
            f"{diagnosis.code}: {diagnosis.severity}{who}",
            f"{diagnosis.sentence}{step}",
            *(f"> {line}" for line in diagnosis.evidence),
        )
    )


def explain(raw: dict[str, Any], *events: dict[str, Any], **more: Any) -> Diagnosis:
    return explain_pod(decode(raw, Pod), [decode(each, Event) for each in events], now=MOMENT, **more)


def assert_answers_as_stored(name: str, answers: Iterable[tuple[str, Diagnosis]]) -> None:
    """Each situation's name, and the whole of its answer."""
    blocks = [f"# {situation}\n{as_text(diagnosis)}" for situation, diagnosis in answers]
    assert_golden(name, "\n".join(blocks), ending="txt")


def assert_told_as_stored(name: str, cases: Sequence[Case]) -> None:
    explained = [(case.name, case.explain()) for case in cases]
    for situation, diagnosis in explained:
        assert diagnosis.sentence.endswith("."), situation
        assert diagnosis.severity != "problem" or (diagnosis.who and diagnosis.next_step), situation
    assert_answers_as_stored(name, explained)
