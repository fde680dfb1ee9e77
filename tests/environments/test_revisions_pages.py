"""The pages of an environment's revisions. Who may: tests/access."""

import pytest
from django.test import Client
from pytest_django import Settings

from dashboard.environments.viewmodel import LARGE, pull_hint
from grid.environments import revisions
from grid.environments.packagechecks import record_report, record_unchecked
from grid.environments.packageindex import Advisory, Package, PackageMark, PackageReport
from grid.environments.revisions import BuildProgress
from grid.kube.objects import Node
from grid.models import AuditEntry, Environment, EnvironmentRevision, Workspace
from grid.runtime import Runtime
from tests.conftest import People
from tests.executions.executing import make_project, make_workspace
from tests.support.builders import MOMENT, decode, node
from tests.support.cluster import POPULATION, FakeCluster
from tests.support.runtime import become

LIST = "/environments/lab/revisions/"


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


@pytest.mark.parametrize(
    ("size", "layer", "pace", "hint"),
    [
        (LARGE - 1, None, 1e-8, ""),
        (LARGE, None, None, "has to pull it all before anything starts."),
        (9 * LARGE, 8 * LARGE, 2e-8, "in about 3 minutes here."),
        (9 * LARGE, LARGE, 2e-8, "revision 4 pulls only the 1 GiB on top of it, in about 21 seconds."),
    ],
)
def test_a_large_image_says_how_long_its_pull_takes(
    size: int | None, layer: int | None, pace: float | None, hint: str
) -> None:
    shown = pull_hint(size, layer, pace, base=4)
    assert shown.endswith(hint)
    assert bool(hint) == bool(shown)


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
