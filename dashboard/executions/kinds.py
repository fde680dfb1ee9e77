"""How each kind of execution is shown: what its room adds to the stored record, to the execution's page and to the launch form.

The room of a kind has its face, which `dashboard.composition` registers; a kind without one is shown like any other that runs in one pod.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.http import HttpRequest

from dashboard.executions.forms import SECTIONS, LaunchForm, LaunchSection
from dashboard.executions.pages.execution_pods import explain
from dashboard.executions.viewmodels.execution import Companion, ExecutionRecord, KindRecord, Person
from dashboard.executions.viewmodels.launch import Slots
from dashboard.executions.viewmodels.timeline import EVENT_WORDS
from dashboard.shell.viewmodels.live import Fragment
from grid.diagnosis.diagnosis import Diagnosis
from grid.kube.objects import Node, Pod
from grid.models import Execution
from grid.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Presence:
    """What the caches show of an execution: `pod` is the one that counts, `pods` and `nodes` those to list, `workers` those on a node."""

    pod: Pod | None
    diagnosis: Diagnosis | None
    pods: Sequence[Pod]
    nodes: Sequence[Node]
    workers: int = 0
    fragments: Sequence[Fragment] = ()


def _one_pod(runtime: Runtime, record: ExecutionRecord, pods: Sequence[Pod], viewer: Person, now: datetime) -> Presence:
    pod = pods[0] if pods else None
    diagnosis = explain(runtime, pod, now, sees_all=viewer.sees_all) if pod is not None else None
    return Presence(pod, diagnosis, pods, list(runtime.nodes.by("pool", record.node_pool)))


@dataclass(frozen=True, slots=True)
class ExecutionKindFace:
    """How one kind is shown; the defaults are of a kind that runs in one pod and adds nothing to any page. `read` gets None in place of the
    time for what a companion's card needs. `context`, of the execution's page, may name the templates of a `kind_notice` and of a
    `kind_section`. `objects` are the kinds and names of the objects that make its pods, `summary` a companion's present condition, and
    `event_words` put messages of Kubernetes' events into plain words, by their reasons."""

    kind: str
    read: Callable[[Execution, datetime | None], KindRecord] = lambda execution, now: KindRecord()
    present: Callable[[Runtime, ExecutionRecord, Sequence[Pod], Person, datetime], Presence] = _one_pod
    context: Callable[[ExecutionRecord, Person], dict[str, Any]] = lambda record, viewer: {}
    fragments: Callable[[ExecutionRecord, Person], Sequence[Fragment]] = lambda record, viewer: ()
    objects: Callable[[ExecutionRecord], Sequence[tuple[str, str]]] = lambda record: ()
    summary: Callable[[Runtime, Companion, datetime], Diagnosis | None] = lambda runtime, companion, now: None
    section: type[LaunchSection] | None = None
    launch_context: Callable[[LaunchForm, Slots, Mapping[str, int]], dict[str, Any]] = lambda form, held, running: {}
    event_words: Mapping[str, Callable[[str], str]] = field(default_factory=dict)


FACES: dict[str, ExecutionKindFace] = {}
# What other rooms add to the template context of every execution's page, from the request, the record and the open tab.
PAGE_PARTS: list[Callable[[HttpRequest, ExecutionRecord, str], Awaitable[dict[str, Any]]]] = []


def register(face: ExecutionKindFace) -> None:
    FACES[face.kind] = face
    if face.section is not None:
        SECTIONS[face.kind] = face.section
    EVENT_WORDS.update(face.event_words)


def face_of(kind: str) -> ExecutionKindFace:
    return FACES.get(kind) or ExecutionKindFace(kind)
