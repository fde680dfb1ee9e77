"""Revisions of environments and their pages: which is the current one, who keeps which, what is built. Who may: tests/access."""

import contextlib
from collections.abc import Callable, Sequence
from datetime import datetime

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.test import Client
from pytest_django import Settings

from dashboard.environments.viewmodel import LARGE, pull_hint
from grid.core.errors import ClusterUnavailable, NotFound, Problem, Rejected
from grid.database.trouble import TroubleLog
from grid.environments import revisions
from grid.environments.packagechecks import record_report, record_unchecked
from grid.environments.packageindex import Advisory, Package, PackageMark, PackageReport
from grid.environments.revisionbuilds import RevisionBuilds
from grid.environments.revisions import BuildProgress, current_number, image_name
from grid.executions.spec import parse_spec
from grid.kube.objects import Node
from grid.models import AuditEntry, Environment, EnvironmentRevision, Execution, State, User, Workspace
from grid.runtime import Runtime
from grid.workspaces import workspaces
from tests.conftest import People
from tests.executions.executing import make_project, make_workspace
from tests.support.builders import MOMENT, decode, node
from tests.support.cluster import POPULATION, FakeCluster
from tests.support.golden import assert_golden
from tests.support.runtime import become
from tests.support.shop import NOW, Shop

pytestmark = pytest.mark.django_db
LIST = "/environments/lab/revisions/"


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
    assert message in made.words
    assert bool(message) == bool(made.words)


def test_news_of_a_build_that_is_over_is_ignored(shop: Shop) -> None:
    made = build(shop.workspace)
    for progress in (BuildProgress("a", "failed", "No."), READY):
        revisions.record_progress(made.pk, progress, now=NOW)
    made.refresh_from_db()
    assert made.state == "failed"
    assert shown(shop.workspace)[0] == 1


@pytest.fixture
def lab(db: None) -> Environment:
    return Environment.objects.create(id="lab", name="Lab", image="lab:1", port=8888)


def text(client: Client, path: str) -> str:
    return " ".join(client.get(path).content.decode().split())


def reporting(name: str, **images: int) -> Node:
    reported = [{"names": [image], "sizeBytes": size} for image, size in images.items()]
    return decode(node(name, status={"images": reported}), Node)


def test_image_size_comes_from_nodes_with_hint_when_large(admin: Client, lab: Environment, runtime: Runtime) -> None:
    EnvironmentRevision.objects.filter(number=1).update(image="base")
    base = EnvironmentRevision.objects.get()
    digest = f"sha256:{'1a' * 32}"
    lab.revisions.create(number=2, image=f"registry.example.com/lab@{digest}", state="ready", base=base)
    lab.revisions.create(number=3, image="unseen:1", state="ready")
    built = {f"registry.example.com/lab@{digest}": 5 << 30, "docker.io/library/base:latest": 4 << 30}
    become(runtime.nodes, [reporting("n-1", **built), reporting("n-2", **{"docker.io/library/base:latest": 4 << 30})])
    shown = text(admin, LIST)
    assert "4 GiB, on 2 of 2 nodes" in shown
    assert "5 GiB, 1 GiB of it on top of the base, on 1 of 2 nodes" in shown
    assert shown.count("Large: a node that has not run it yet has to pull it all") == 2
    assert "on 1 of 2 nodes" in text(admin, f"{LIST}2/")


PULLS = [(LARGE - 1, None, 1e-8), (LARGE, None, None), (9 * LARGE, 8 * LARGE, 2e-8), (9 * LARGE, LARGE, 2e-8)]


def test_a_large_image_says_how_long_its_pull_takes() -> None:
    words = [
        f"{size} bytes, {layer} on top, {pace}: {pull_hint(size, layer, pace, base=4)}" for size, layer, pace in PULLS
    ]
    assert_golden("words-of-pulls", "\n".join(words), ending="txt")


@pytest.mark.usefixtures("runtime")
def test_new_image_is_current_revision_and_in_history(admin: Client, lab: Environment) -> None:
    answer = admin.post(f"{LIST}new/", {"what": "image", "image": "lab:2", "note": "Newer"})
    assert answer.headers["Location"] == f"{LIST}2/"
    lab.refresh_from_db()
    assert (lab.image, lab.current_revision) == ("lab:2", 2)
    assert AuditEntry.objects.get().changes == {"image": ["lab:1", "lab:2"]}
    shown = text(admin, LIST)
    assert "Newer" in shown
    assert shown.count("badge") == 1
    assert "lab:2" in text(admin, f"{LIST}2/")


@pytest.mark.parametrize(
    ("entries", "field"),
    [
        ({"what": "image"}, "image"),
        ({"what": "built", "base": "1"}, "requirements"),
        ({"what": "built", "base": "7", "requirements": "polars"}, "base"),
        ({"what": "spell"}, "what"),
    ],
)
@pytest.mark.usefixtures("runtime")
def test_a_wrong_entry_is_said_at_its_field(
    admin: Client, lab: Environment, cluster: FakeCluster, entries: dict[str, str], field: str
) -> None:
    cluster.sandbox = POPULATION
    answer = admin.post(f"{LIST}new/", entries)
    assert (answer.status_code, list(answer.context["form"].errors)) == (422, [field])
    assert EnvironmentRevision.objects.count() == 1


@pytest.mark.usefixtures("runtime")
def test_requirements_are_accepted_only_with_builder(admin: Client, lab: Environment, settings: Settings) -> None:
    entries = {"what": "built", "base": "1", "requirements": "polars"}
    assert "builds no images" in text(admin, f"{LIST}new/")
    answer = admin.post(f"{LIST}new/", entries)
    assert "builds no images" in answer.context["form"].errors["requirements"][0]
    settings.BUILDER, settings.BUILD_REPOSITORY = "buildah", "registry.example.com/grid"
    assert "builds no images" not in text(admin, f"{LIST}new/")
    admin.post(f"{LIST}new/", entries)
    assert EnvironmentRevision.objects.get(number=2).image.startswith("registry.example.com/grid/lab:2-")


@pytest.mark.usefixtures("runtime")
def test_build_shows_its_log_and_failed_one_is_correctable(
    admin: Client, lab: Environment, cluster: FakeCluster
) -> None:
    cluster.sandbox = POPULATION
    admin.post(f"{LIST}new/", {"what": "built", "base": "1", "requirements": "polars # fast\n\n"})
    made = EnvironmentRevision.objects.get(number=2)
    assert (made.requirements, made.state, made.made_by) == ("polars", "building", "ada-admin")
    assert "It has not begun yet." in text(admin, f"{LIST}2/")
    failed = BuildProgress("a", "failed", "No such package.", "Collecting <polars>\nERROR: none")
    revisions.record_progress(made.pk, failed, now=MOMENT)
    shown = text(admin, f"{LIST}2/")
    assert "No such package." in shown
    assert "Collecting &lt;polars&gt;" in shown
    assert "ERROR: none" in text(admin, f"{LIST}2/?part=rows")
    assert admin.get(f"{LIST}2/?download=1").content.startswith(b"Collecting <polars>")
    again = admin.get(f"{LIST}new/?from=2").context["form"].initial
    assert (again["what"], again["base"], again["requirements"]) == ("built", 1, "polars")


@pytest.fixture
def used(people: People) -> Workspace:
    """A stopped workspace with revision 1 of an environment that has two."""
    workspace = make_workspace(people.owner, make_project(people.owner))
    Workspace.objects.update(environment_revision=1)
    revisions.make_image(workspace.environment_id, "lab:2", note="", by="admin", now=MOMENT)
    return workspace


@pytest.mark.usefixtures("runtime")
def test_package_findings_are_marked_and_failed_checks_explained(admin: Client, lab: Environment) -> None:
    made = revisions.make_built("lab", 1, "jinja2", note="", by="admin", now=MOMENT)
    revisions.record_progress(made.pk, BuildProgress("a", "ready"), now=MOMENT)
    assert "Known against its packages" not in text(admin, f"{LIST}2/")
    record_unchecked(made.pk, "pypi.org did not answer within 10 seconds.", MOMENT)
    assert "Not checked: pypi.org did not answer within 10 seconds." in text(admin, f"{LIST}2/")
    assert "Packages not checked" in text(admin, LIST)
    advisory = Advisory("PYSEC-2019-217", "https://osv.dev/vulnerability/PYSEC-2019-217", ("2.10.1", "3"))
    marks = (
        PackageMark(Package("jinja2", "2.10"), (advisory,)),
        PackageMark(Package("rich", "1"), why_yanked="<b>Broken</b>"),
    )
    odd = Package("odd", "2")
    report = PackageReport(MOMENT, "pypi.org", 3, marks, (Package("ours", "1"), odd), (odd,))
    record_report(made.pk, report)
    assert "1 package with known vulnerabilities and 1 package yanked" in text(admin, LIST)
    shown = text(admin, f"{LIST}2/")
    assert 'href="https://osv.dev/vulnerability/PYSEC-2019-217"' in shown
    for words in (
        "fixed in 2.10.1 and 3",
        "Yanked: &lt;b&gt;Broken",
        "2 marked of 3 packages, says pypi.org",
        "not know ours 1. It answered with an error for odd 2.",
    ):
        assert words in shown
    record_unchecked(made.pk, "pypi.org cannot be reached.", MOMENT)
    assert "Not checked since, last on" in text(admin, f"{LIST}2/")


@pytest.mark.usefixtures("runtime")
def test_deprecating_says_first_who_uses_it(admin: Client, used: Workspace) -> None:
    path = f"/environments/{used.environment_id}/revisions/1/deprecate/"
    asked = text(admin, path)
    assert "1 workspace can still be resumed with it, and the form points to revision 2." in asked
    assert admin.post(path, {"because": "It has a bug."}).status_code == 302
    stored = EnvironmentRevision.objects.get(number=1)
    assert (stored.state, stored.deprecated_because) == ("deprecated", "It has a bug.")
    assert "It has a bug." in text(admin, f"/environments/{used.environment_id}/revisions/")


@pytest.mark.usefixtures("two_pools")
def test_workspace_can_resume_with_newest_revision(used: Workspace, people: People, client: Client) -> None:
    client.force_login(people.owner)
    revisions.deprecate(used.environment_id, 1, because="")
    path = f"/workspaces/{used.pk}/resume/"
    shown = text(client, path)
    assert "is deprecated. The current one is revision 2." in shown
    assert "Use revision 2" in shown
    entries = {"environment": used.environment_id, "tier": used.tier_id, "newest": "on"}
    assert client.post(path, entries).status_code == 302
    used.refresh_from_db()
    assert used.environment_revision == 2
    assert ", revision 2" in text(client, f"/workspaces/{used.pk}/")
