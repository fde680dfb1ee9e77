"""A made-up kind whose face is registered, on the pages that all executions have: one folder and one line make a kind."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest
from django import forms
from django.test import Client

from dashboard.executions.forms import SECTIONS, LaunchForm, LaunchSection, SectionPlace, linked
from dashboard.executions.kinds import FACES, ExecutionKindFace, register
from dashboard.executions.records import read_record
from dashboard.executions.viewmodels.execution import ExecutionRecord, KindRecord, Person
from dashboard.executions.viewmodels.timeline import EVENT_WORDS
from dashboard.shell.viewmodels.listing import EmptyState
from dashboard.shell.viewmodels.live import Fragment
from grid.models import Execution
from grid.runtime import Runtime
from tests.conftest import People
from tests.executions.executing import make_execution, make_project


@dataclass(frozen=True, slots=True)
class ModelRecord(KindRecord):
    size: str

    @property
    def words(self) -> str:
        return f"Model of {self.size}"


class ModelSection(LaunchSection):
    template = "executions/fragments/launch_errors.html"
    attached_template = "executions/fragments/launch_errors.html"
    attaches_to = frozenset({"app"})
    weights = forms.CharField()

    @classmethod
    def offered(cls, data: Mapping[str, Any] | None, place: SectionPlace) -> "ModelSection":
        return cls(data, initial=dict(place.initial))

    @classmethod
    def linked(cls, query: Mapping[str, str]) -> dict[str, Any]:
        return {"weights": query["weights"]} if "weights" in query else {}

    def launch_values(self) -> dict[str, Any]:
        return {}

    def choices(self) -> Sequence[str]:
        return [self.cleaned_data["weights"]]

    def link(self) -> dict[str, str]:
        return {"weights": str(self["weights"].value() or "")}

    def as_sent(self) -> dict[str, Any]:
        return self.link()


def _read(execution: Execution, now: datetime | None) -> KindRecord:
    return ModelRecord("7 billion")


def _fragments(record: ExecutionRecord, viewer: Person) -> Sequence[Fragment]:
    return [Fragment("model-note", "shell/fragments/empty_item.html", EmptyState("Serves since noon.", "Ask it."))]


def _context(record: ExecutionRecord, viewer: Person) -> dict[str, Any]:
    return {"kind_notice": "model-note"}


@pytest.fixture(autouse=True)
def model_face(monkeypatch: pytest.MonkeyPatch) -> ExecutionKindFace:
    face = ExecutionKindFace(
        "model",
        read=_read,
        fragments=_fragments,
        context=_context,
        section=ModelSection,
        event_words={"Warmed": lambda message: f"In plain words: {message}"},
    )
    for registry in (FACES, SECTIONS, EVENT_WORDS):
        for key in ("model", "Warmed"):
            monkeypatch.setitem(registry, key, None)
            del registry[key]
    register(face)
    return face


@pytest.fixture
def model(people: People, runtime: Runtime) -> Execution:
    return make_execution(people.owner, make_project(people.owner), kind="model")


def test_page_of_registered_kind_shows_record_and_notice(client: Client, people: People, model: Execution) -> None:
    client.force_login(people.owner)
    page = client.get(f"/executions/{model.pk}/").content.decode()
    assert "Model of 7 billion" in page
    assert "Serves since noon." in page


def test_record_of_registered_kind_is_read_by_face(model: Execution) -> None:
    record = read_record(model.pk)
    assert record is not None
    assert record.kind_record == ModelRecord("7 billion")


def test_launch_form_has_the_section_of_a_registered_kind(people: People) -> None:
    form = LaunchForm(initial=linked({"weights": "small.bin"}), user=people.owner, kind="model")
    assert isinstance(form.own, ModelSection)
    assert form.link() == {"kind": "model", "weights": "small.bin"}
    assert form.as_sent.own is not None
    assert form.as_sent.own.is_valid()


def test_launch_form_attaches_a_registered_kind_where_it_says(people: People) -> None:
    form = LaunchForm({"with_cluster": "on"}, user=people.owner, kind="app")
    assert isinstance(form.attached, ModelSection)
    assert form.sections == [form.attached]
    assert "weights" in form.attached.errors
    assert LaunchForm(user=people.owner, kind="model").attached is None
