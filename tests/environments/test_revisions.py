"""Revisions of environments: which is the current one, who keeps which, and what is built."""

import contextlib
from collections.abc import Callable, Sequence
from datetime import datetime

import pytest
from asgiref.sync import async_to_sync, sync_to_async

from grid.core.errors import ClusterUnavailable, NotFound, Problem, Rejected
from grid.database.trouble import TroubleLog
from grid.environments import revisions
from grid.environments.revisionbuilds import RevisionBuilds
from grid.environments.revisions import BuildProgress, current_number, image_name
from grid.executions.spec import parse_spec
from grid.models import AuditEntry, Environment, EnvironmentRevision, Execution, State, User, Workspace
from grid.workspaces import workspaces
from tests.support.shop import NOW, Shop

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("states", "current"),
    [
        ([], 0),
        ([(1, "ready")], 1),
        ([(1, "ready"), (2, "ready")], 2),
        ([(2, "ready"), (1, "ready"), (3, "building")], 2),
        ([(1, "ready"), (2, "failed"), (3, "deprecated")], 1),
        ([(1, "deprecated"), (2, "building")], 0),
    ],
)
def test_the_newest_ready_revision_is_the_current_one(states: Sequence[tuple[int, str]], current: int) -> None:
    assert current_number(states) == current


def test_another_content_has_another_image_name() -> None:
    names = {image_name("lab", 2, base, packages) for base in ("a:1", "a:2") for packages in (["x"], ["x", "y"])}
    assert len(names) == 4
    assert all(name.startswith("compute-grid-built/lab:2-") for name in names)


def shown(environment: Environment) -> tuple[int, str, list[tuple[int, str, str]]]:
    environment.refresh_from_db()
    rows = environment.revisions.order_by("number").values_list("number", "image", "state")
    return environment.current_revision, environment.image, list(rows)


def make(environment: Environment, image: str = "lab:5", note: str = "") -> EnvironmentRevision:
    return revisions.make_image(environment.pk, image, note=note, by="admin", now=NOW)


def build(environment: Environment, text: str = "polars==1.9.0", base: int = 1) -> EnvironmentRevision:
    return revisions.make_built(environment.pk, base, text, note="", by="admin", now=NOW)


def test_environment_gets_a_revision_for_each_image(shop: Shop) -> None:
    lab = shop.workspace
    first = lab.image
    assert shown(lab) == (1, first, [(1, first, "ready")])
    lab.description = "Other"
    lab.save()
    assert shown(lab)[0] == 1
    lab.image = "lab:5"
    lab.save()
    assert shown(lab) == (2, "lab:5", [(1, first, "ready"), (2, "lab:5", "ready")])
    make(lab, first)
    assert shown(lab)[:2] == (3, first)


def test_deprecated_revision_leaves_launches_to_newest_ready_one(shop: Shop) -> None:
    lab, first = shop.workspace, shop.workspace.image
    make(lab)
    revisions.deprecate(lab.pk, 2, because="It has a bug.")
    assert shown(lab)[:2] == (1, first)
    assert shop.launch().spec["environment"]["revision"] == 1
    assert revisions.other_revision(lab, 2) == (
        f"Revision 2 of {lab.name} is deprecated: It has a bug. The current one is revision 1.",
        True,
    )
    with pytest.raises(Rejected, match="only ready revision"):
        revisions.deprecate(lab.pk, 1, because="")
    lab.description = "Saving it brings nothing back"
    lab.save()
    assert shown(lab)[:2] == (1, first)


@pytest.mark.parametrize("image", ["", "lab 5", "lab:5\n--x", "x" * 256, "läb"])
def test_a_wrong_image_is_refused_at_its_field(shop: Shop, image: str) -> None:
    with pytest.raises(Rejected) as refused:
        make(shop.workspace, image)
    assert [problem.path for problem in refused.value.problems] == ["image"]


def test_workspace_resumes_with_its_revision_unless_newest_is_requested(shop: Shop) -> None:
    lab, first = shop.workspace, shop.workspace.image
    workspace = Workspace.objects.get(pk=settled(shop.launch()).workspace_id)
    assert workspace.environment_revision == 1
    make(lab)
    lab.refresh_from_db()
    lab.variables = {"NEW": "1"}
    lab.save()

    def resumed(*, newest: bool) -> tuple[str, int, object]:
        execution = workspaces.resume(
            workspace.pk, environment=lab, tier=shop.tier, with_cluster=False, now=NOW, newest=newest
        )
        settled(execution)
        workspace.refresh_from_db()
        environment = parse_spec(execution).environment
        assert environment.revision == workspace.environment_revision
        return environment.image, environment.revision, environment.variables

    assert resumed(newest=False) == (first, 1, {"NEW": "1"})
    assert resumed(newest=True) == ("lab:5", 2, {"NEW": "1"})
    assert resumed(newest=False) == ("lab:5", 2, {"NEW": "1"})


def settled(execution: Execution) -> Execution:
    Execution.objects.filter(pk=execution.pk).update(state=State.STOPPED, ended_at=NOW, settled_at=NOW)
    return execution


class FakeBuilder:
    """Answers in turn; an error is raised, and the last answer is repeated."""

    def __init__(self, *answers: BuildProgress | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def ask(self, revision: EnvironmentRevision) -> BuildProgress:
        self.asked.append(revision.image)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


class FakeContext:
    """As much of a context as builds need; the database is this thread's."""

    api = None

    async def due_work(self, work: Callable[..., object], *args: object, **options: object) -> object:
        return await sync_to_async(work)(*args, **options)

    def clock(self) -> datetime:
        return NOW


def after(looks: int, *answers: BuildProgress | Exception) -> None:
    builds = RevisionBuilds(FakeContext(), TroubleLog(lambda: 0.0), FakeBuilder(*answers))  # type: ignore[arg-type]
    for _ in range(looks):
        with contextlib.suppress(ClusterUnavailable):
            async_to_sync(builds.run_once)()


BUILDING = BuildProgress("a", "building", log="Collecting polars")
READY = BuildProgress("a", "ready", log="Done", digest="sha256:1", size_bytes=300, layer_bytes=20)


def test_a_finished_build_is_the_current_revision(shop: Shop) -> None:
    User.objects.create_user("admin")
    made = build(shop.workspace)
    after(1, BUILDING)
    made.refresh_from_db()
    assert (made.state, made.log) == ("building", "Collecting polars")
    assert Environment.objects.get(pk=shop.workspace.pk).current_revision == 1
    after(1, READY)
    made.refresh_from_db()
    assert (made.state, made.size_bytes, made.layer_bytes, made.digest) == ("ready", 300, 20, "sha256:1")
    lab = Environment.objects.get(pk=shop.workspace.pk)
    assert (lab.current_revision, lab.image) == (2, made.image)
    assert AuditEntry.objects.get(object_id=lab.pk).changes == {"image": [shop.workspace.image, made.image]}


@pytest.mark.parametrize(
    ("answers", "state", "message"),
    [
        ((BuildProgress("a", "failed", "No such package."),), "failed", "No such package."),
        ((NotFound("no"),), "failed", "builds no images"),
        ((Rejected([Problem("", "No such base.")]),), "failed", "No such base."),
        ((ClusterUnavailable("away"),), "building", "does not answer now"),
        ((ClusterUnavailable("away"), BUILDING), "building", ""),
        (tuple(BuildProgress(str(number), "building") for number in range(4)), "failed", "ended 3 times"),
        (tuple(BuildProgress(str(number), "building") for number in range(3)), "building", ""),
    ],
)
def test_build_outcome_follows_its_progress(
    shop: Shop, answers: Sequence[BuildProgress | Exception], state: str, message: str
) -> None:
    made = build(shop.workspace)
    after(len(answers), *answers)
    made.refresh_from_db()
    assert made.state == state
    assert message in made.message
    assert bool(message) == bool(made.message)


def test_news_of_a_build_that_is_over_is_ignored(shop: Shop) -> None:
    made = build(shop.workspace)
    for progress in (BuildProgress("a", "failed", "No."), READY):
        revisions.record_progress(made.pk, progress, now=NOW)
    made.refresh_from_db()
    assert made.state == "failed"
    assert shown(shop.workspace)[0] == 1
