"""The launch form over HTTP: what is offered, what is refused and where it is said, and that one form launches once."""

import re
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from dashboard.executions.launch_facts import last_launches
from dashboard.executions.viewmodels.launch import tier_status
from grid.diagnosis.launchfit import AlikeNodes, LaunchPool, PodPlan
from grid.models import Environment, Execution, HardwareTier, Project, State, Workspace
from tests.conftest import People, client_of
from tests.executions.executing import FORM, make_environment, make_execution, make_project, make_tier, page
from tests.support.builders import MOMENT
from tests.support.frozen import on_tier
from tests.support.golden import assert_golden

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("runtime")]


@pytest.fixture
def offered(people: People) -> Project:
    """A project of the owner's, one environment, two tiers."""
    make_environment()
    make_tier("small", is_default=True, cost_per_hour=Decimal("0.05"))
    make_tier(
        "gpu", name="GPU", cores="3500m", memory="12Gi", gpus=1, cost_per_hour=Decimal("0.53"), node_pool="default-gpu"
    )
    return make_project(people.owner, people.teammate)


def filled(**changed: str) -> dict[str, str]:
    return FORM | changed


def test_form_shows_tiers_with_price_and_marks_the_default(people: People, offered: Project) -> None:
    shown = page(people.owner)
    for words in ("1 core<", "4 GiB", "3.5 cores", "12 GiB", "1 GPU", "$0.05 an hour", "$0.53 an hour"):
        assert words in shown
    assert re.search(r'value="small" required checked', shown)
    assert "You use 0 of 25 slots." in shown


def test_launch_goes_to_the_page_of_its_execution(people: People, offered: Project) -> None:
    answer = client_of(people.owner).post("/launch/", filled(title="  My notebook "))
    execution = Execution.objects.get()
    assert (answer.status_code, answer["Location"]) == (302, f"/executions/{execution.pk}/")
    assert (execution.owner, execution.title, execution.state) == (people.owner, "My notebook", State.QUEUED)
    assert (execution.project, execution.tier_id, execution.kind) == (offered, "small", "workspace")


def test_form_and_launch_ask_the_database_little(people: People, offered: Project) -> None:
    """Each of their questions costs some half a millisecond, and people launch all at once."""
    client = client_of(people.owner)
    with CaptureQueriesContext(connection) as of_form:
        assert client.get("/launch/").status_code == 200
    with CaptureQueriesContext(connection) as of_launch:
        assert client.post("/launch/", filled()).status_code == 302
    reads = [
        [query["sql"] for query in queries if query["sql"].lstrip("(").startswith("SELECT")]  # PostgreSQL's unions
        for queries in (of_form, of_launch)
    ]
    assert [len(texts) for texts in reads] == [43, 19]
    assert len(list(filter(counts_all_slots, reads[0]))) == 1


def counts_all_slots(sql: str) -> bool:
    """Return whether a statement looks at all that holds slots, which grows with all that runs."""
    is_of_one = '"owner_id" =' in sql
    return '"slots_reserved_at" IS NOT NULL' in sql and "GROUP BY" in sql and not is_of_one


def test_a_member_launches_as_themselves(people: People, offered: Project) -> None:
    client_of(people.teammate).post("/launch/", filled())
    assert Execution.objects.get().owner == people.teammate


@pytest.mark.parametrize("who", ["stranger", "operator", "admin"])
def test_nonmember_cannot_launch_in_the_project(people: People, offered: Project, who: str) -> None:
    user = getattr(people, who)
    make_project(user, id="own", name="Own")
    assert "Customer churn" not in page(user)
    answer = client_of(user).post("/launch/", filled())
    assert answer.status_code == 422
    assert "Choose one of your projects" in answer.content.decode()
    assert not Execution.objects.exists()


def test_a_foreign_site_cannot_launch(people: People, offered: Project) -> None:
    assert client_of(people.owner, enforce_csrf_checks=True).post("/launch/", filled()).status_code == 403
    assert not Execution.objects.exists()


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("project", "", "Choose a project."),
        ("project", "nonsense", "Choose one of your projects"),
        ("environment", "<script>", "This environment is no longer available"),
        ("tier", "none-such", "This hardware tier is not available to you"),
        ("title", "x" * 121, "Use at most 120 characters"),
        ("title", "\u202eevil", "Use visible characters"),
    ],
)
def test_wrong_value_is_explained_at_its_field(
    people: People, offered: Project, field: str, value: str, sentence: str
) -> None:
    answer = client_of(people.owner).post("/launch/", filled(**{field: value}))
    assert answer.status_code == 422
    shown = answer.content.decode()
    assert re.search(rf'id="id_{field}_error"><p>{re.escape(sentence)}', shown)
    assert not Execution.objects.exists()


def test_typed_values_are_kept_after_a_refusal(people: People, offered: Project) -> None:
    answer = client_of(people.owner).post(
        "/launch/", filled(tier="gpu", title='<script>alert("x")</script>', project="zzz")
    )
    shown = answer.content.decode()
    assert 'value="gpu" required checked' in shown
    assert 'value="t1"' in shown
    assert "&lt;script&gt;" in shown
    assert "<script>alert" not in shown


def test_hidden_archived_and_foreign_choices_are_not_offered(people: People, offered: Project) -> None:
    make_tier("old", name="Old tier", is_archived=True)
    make_tier("hidden", name="Hidden tier", is_visible=False)
    make_tier("jobs", name="Jobs tier", kinds=["job"])
    special = make_tier("special", name="Special tier")
    special.groups.add(Group.objects.create(name="chosen few"))
    make_environment("ancient", name="Ancient", is_archived=True)
    shown = page(people.owner)
    for name in ("Old tier", "Hidden tier", "Jobs tier", "Special tier", "Ancient"):
        assert name not in shown
    assert client_of(people.owner).post("/launch/", filled(tier="special")).status_code == 422
    people.owner.groups.add(Group.objects.get(name="chosen few"))
    assert "Special tier" in page(people.owner)


@pytest.mark.django_db(transaction=True)
def test_sending_a_form_twice_launches_once(people: People, offered: Project) -> None:
    """Nothing is looked up first: the database's unique key decides, so it makes no difference how close the two clicks are."""
    client = client_of(people.owner)
    first, second = client.post("/launch/", filled()), client.post("/launch/", filled())
    assert Execution.objects.count() == 1
    assert first["Location"] == second["Location"]
    assert "launched once" in client.get(second["Location"]).content.decode()


def test_old_form_leads_to_workspace_without_its_dropped_execution(people: People, offered: Project) -> None:
    client = client_of(people.owner)
    client.post("/launch/", filled())
    Execution.objects.all().delete()
    workspace = Workspace.objects.get()
    assert client.post("/launch/", filled())["Location"] == f"/workspaces/{workspace.pk}/"
    Workspace.objects.update(deleted_at=timezone.now())
    answer = client.post("/launch/", filled())
    assert answer.status_code == 422
    assert "This form was sent before, and the workspace that it launched was deleted." in answer.content.decode()
    assert not Execution.objects.exists()


def test_other_choice_showing_or_person_launches_again(people: People, offered: Project) -> None:
    first, second = (re.findall(r'name="token" value="([^"]+)"', page(people.owner))[0] for _ in range(2))
    forms = [filled(token=first), filled(token=first, tier="gpu"), filled(token=second)]
    for user, form in (*((people.owner, form) for form in forms), (people.teammate, forms[0])):
        assert client_of(user).post("/launch/", form).status_code == 302
    assert Execution.objects.count() == 4


def test_launch_again_fills_the_form_in(people: People, offered: Project) -> None:
    make_project(people.owner, id="aaa", name="Another")
    model = make_execution(people.owner, offered, tier=HardwareTier.objects.get(pk="gpu"), title="Run 7")
    shown = page(people.owner, f"?from={model.pk}")
    assert 'value="gpu" required checked' in shown
    assert 'value="Run 7"' in shown
    assert '<option value="churn" selected>' in shown


def test_launch_again_of_hidden_execution_is_an_empty_form(people: People, offered: Project) -> None:
    model = make_execution(people.owner, offered, title="Secret plan")
    make_project(people.stranger, id="own", name="Own")
    assert "Secret plan" not in page(people.stranger, f"?from={model.pk}")


def test_person_without_a_project_is_told_the_next_step(people: People, offered: Project) -> None:
    shown = page(people.stranger)
    assert "You are not a contributor of any project yet." in shown
    assert '<form class="form launch"' not in shown


def test_kinds_are_offered_where_an_environment_exists(people: People, offered: Project) -> None:
    assert "?kind=job" not in page(people.owner)
    Environment.objects.create(id="script", name="Python script", kind="job", image="python:3.11")
    shown = page(people.owner, "?kind=job")
    assert "Python script" in shown
    assert "JupyterLab" not in shown
    client_of(people.owner).post("/launch/", filled(kind="job", environment="script"))
    assert Execution.objects.get().kind == "job"


PLAN = PodPlan("Small", "default", {"cpu": 2000, "memory": 4 * 2**30, "pods": 1})
ROOMY, TINY = (AlikeNodes(size, size) for size in ({"cpu": 8000, "memory": 2**35, "pods": 9}, {"cpu": 1000, "pods": 9}))


TIERS = {
    "some places": (1, LaunchPool("default", (ROOMY,))),
    "no place": (4, LaunchPool("default", (ROOMY,))),
    "no node yet": (0, LaunchPool("default", maximum=5)),
    "no node": (0, LaunchPool("default")),
    "no room": (0, LaunchPool("default", (replace(ROOMY, takes_pods=False),))),
    "too small": (4, LaunchPool("default", (TINY,))),
}


def test_a_tier_says_whether_it_can_be_had_now() -> None:
    states = {name: tier_status(PLAN, {"default": pool}, 4, running) for name, (running, pool) in TIERS.items()}
    states["unknown"] = tier_status(PLAN, None, 4, 0)
    words = [f"> {name}\n{now.severity}: {now.word}: {now.note}" for name, now in states.items()]
    assert_golden("words-of-tiers", "\n".join(words), ending="txt")


@pytest.fixture
def project(people: People) -> Project:
    for id in ("alpha", "beta", "gamma", "delta"):
        make_environment(id, name=id.capitalize(), frameworks={"dask": "2026.8.0"} if id == "gamma" else {})
    make_tier()
    return make_project(people.owner, people.teammate)


def launch(people: People, project: Project, environment: str, minute: int, **fields: object) -> None:
    values = {"kind": "workspace", **on_tier(make_tier(f"t{minute}")), "owner": people.owner, **fields}
    Execution.objects.create(
        project=project,
        environment=Environment.objects.get(pk=environment),
        requested_at=MOMENT + timedelta(minutes=minute),
        **values,
    )


def environments_offered(people: People, query: str = "") -> list[str]:
    page = client_of(people.owner).get(f"/launch/{query}").content.decode()
    return re.findall(r'<input[^>]* name="environment"[^>]* value="([^"]*)"', page)


def test_environments_are_in_the_order_of_their_last_use(people: People, project: Project) -> None:
    assert environments_offered(people) == ["alpha", "beta", "delta", "gamma"], (
        "without a framework first, then by name"
    )
    for minute, environment in enumerate(("alpha", "gamma", "delta", "gamma")):
        launch(people, project, environment, minute)
    launch(people, project, "beta", 9, owner=people.teammate)
    assert environments_offered(people) == ["gamma", "delta", "alpha", "beta"]
    assert environments_offered(people, "?environment=beta") == ["beta", "gamma", "delta", "alpha"], (
        "what was asked for is first"
    )


def test_form_begins_with_the_last_launch_of_its_kind(people: People, project: Project) -> None:
    launch(people, project, "alpha", 1)
    launch(people, project, "beta", 2, kind="job")
    first = last_launches(people.owner).first_choices("workspace")
    assert (first["project"], first["environment"], first["tier"]) == ("churn", "alpha", "t1")
    assert "environment" not in last_launches(people.owner).first_choices("app")
    assert last_launches(people.stranger).first_choices("job")["project"] is None
