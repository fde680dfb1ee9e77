"""A kind of executions is one class and one line of registration; hooks that rooms register on the changes of an execution's state."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings

from grid.core.errors import Problem, Rejected
from grid.core.reasons import ANYBODY, words_of
from grid.executions import kinds, lifecycle
from grid.executions.launchrequest import LaunchRequest, StoredRows
from grid.executions.lifecycle import Entered, Transition
from grid.executions.manifests import Manifest
from grid.executions.podkind import PodKind
from grid.executions.preview import Preview
from grid.executions.request import draft, submit, validate
from grid.executions.spec import parse_spec
from grid.executions.storage import Storage
from grid.files.filesaving import FileSaving
from grid.models import Environment, Execution, LifecycleEntry, State
from grid.models.environment import KIND_WORDS, Kind
from grid.queue.launches import why_not_launch
from tests.controller.world import World, in_world, states_of
from tests.support.shop import NOW, Shop

CHANGE = Transition(State.RUNNING, "running", "Running.")
ICONS = Path(__file__).parents[2] / "static" / "icons.svg"


class ModelKind(PodKind):
    """A made-up kind: an endpoint of a trained model, which has a name."""

    restart_policy = "Never"

    def own_problems(self, request: LaunchRequest, stored: StoredRows) -> Iterator[Problem]:
        if not request.details.get("model"):
            yield Problem("model", "Name the model.", "required")


@pytest.fixture
def model() -> Iterator[ModelKind]:
    kind = ModelKind("model", FileSaving)
    kinds.register(kind)
    yield kind
    del kinds._KINDS["model"]


@pytest.fixture
def request_of(shop: Shop, model: ModelKind) -> Any:
    environment = Environment.objects.create(
        id="endpoint", name="Endpoint", kind="model", image="compute-grid/endpoint:1", port=8080, command=["serve"]
    )

    def make(**changes: Any) -> LaunchRequest:
        return shop.request(**{"kind": "model", "environment": environment, "details": {"model": "churn"}} | changes)

    return make


def test_new_kind_validates_its_own_part(request_of: Any) -> None:
    assert validate(request_of()) == []
    with pytest.raises(Rejected, match=r"Name the model\."):
        submit(request_of(details={}), gate=why_not_launch, now=NOW)


def test_new_kind_extends_the_spec_and_the_pod(request_of: Any) -> None:
    execution = submit(request_of(), gate=why_not_launch, now=NOW)
    spec = parse_spec(Execution.objects.get(pk=execution.pk))
    assert (spec.kind, spec.details) == ("model", {"model": "churn"})
    preview = Preview.of(draft(request_of(), now=NOW, execution_id="abc"))
    made: list[Manifest] = preview.objects(namespace="grid", storage=Storage(), token="t")
    (pod,) = [manifest.body for manifest in made if manifest.body["kind"] == "Pod"]
    assert (pod["metadata"]["name"], pod["spec"]["restartPolicy"]) == ("model-abc", "Never")


@override_settings(FRONT_IMAGE="nginx:1")
@pytest.mark.parametrize("has_front", [True, False])
def test_kind_says_whether_nginx_stands_before_its_page(
    request_of: Any, monkeypatch: pytest.MonkeyPatch, has_front: bool
) -> None:
    monkeypatch.setattr(ModelKind, "has_front", has_front)
    (row,) = draft(request_of(), now=NOW, execution_id="abc")
    assert (parse_spec(row).front is not None) is has_front


@in_world
async def test_new_kind_is_followed_to_its_end(request_of: Any) -> None:
    world, execution = World(), submit(request_of(), gate=why_not_launch, now=NOW)
    controller = world.controller()
    await world.step(controller)
    for _ in range(4):
        world.behave()
        await world.step(controller)
    assert states_of(execution)[-3:] == ["running", "finishing", "succeeded"]


def test_unregistered_kind_is_refused(shop: Shop) -> None:
    problems = validate(shop.request(kind="model"))
    assert [problem.path for problem in problems] == ["kind"]


def test_kind_of_a_taken_name_is_refused() -> None:
    kinds.register(type(kinds.kind_of("job"))("job", FileSaving))  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="job is registered twice"):
        kinds.register(ModelKind("job", FileSaving))


def test_new_kind_is_named_where_it_waits() -> None:
    values = {"tier": "Small", "held": 1, "maximum": 1, "parts": ["model", "cluster"], "position": 1}
    sentence = words_of("over_tier_maximum", values, "", ANYBODY)
    assert "(one for model and one for the cluster)" in sentence


@pytest.mark.parametrize("kind", Kind)
def test_each_kind_is_registered_with_its_words_and_icon(kind: Kind) -> None:
    assert kind in kinds._KINDS, "register it in `compose` of grid/composition.py"
    assert kind in KIND_WORDS, "say its words in KIND_WORDS of grid/models/environment.py"
    assert f'<symbol id="{kind}"' in ICONS.read_text(), "draw it as <symbol id=...> in static/icons.svg"


@pytest.fixture
def own_hooks() -> Iterator[None]:
    """Take back what a test registers."""
    on_enter, on_slots_freed = lifecycle._on_enter.copy(), lifecycle._on_slots_freed.copy()
    yield
    lifecycle._on_enter, lifecycle._on_slots_freed = on_enter, on_slots_freed


def enter(execution: Execution) -> bool:
    return lifecycle.enter(execution.pk, CHANGE, revision=execution.revision, left=execution.state, now=NOW)


def test_failing_hook_undoes_the_change(shop: Shop, own_hooks: None) -> None:
    def fail(entered: Entered) -> None:
        raise RuntimeError("no room")

    lifecycle.on_enter(fail)
    execution = shop.launch()
    entries = LifecycleEntry.objects.count()
    with pytest.raises(RuntimeError, match="no room"):
        enter(execution)
    execution.refresh_from_db()
    assert (execution.state, LifecycleEntry.objects.count()) == (State.QUEUED, entries)


def test_lost_write_calls_no_hook(shop: Shop, own_hooks: None) -> None:
    seen: list[Entered] = []
    lifecycle.on_enter(seen.append)
    execution = shop.launch()
    execution.revision += 1
    assert not enter(execution)
    assert not seen
