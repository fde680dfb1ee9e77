"""The history of ended executions: every page by index, each execution once, for whoever may see it."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from dashboard.executions.history import PER_PAGE, ended_page
from dashboard.executions.records import visible_executions
from dashboard.executions.viewmodels.executions_view import ExecutionsView
from dashboard.shell.access import Viewer, viewer_of
from grid.models import Execution, State, User
from tests.conftest import People, make_people
from tests.executions.executing import make_environment, make_project, make_tier
from tests.support.builders import MOMENT
from tests.support.database import ON_POSTGRESQL
from tests.support.frozen import on_tier

ENDED = ExecutionsView(show="ended")


@pytest.fixture(scope="module")
def written(module_transaction: None) -> People:
    """480 ended executions of four people in three projects, three of them at each moment, and some that run."""
    people = make_people()
    projects = [
        make_project(people.owner, people.teammate),
        make_project(people.teammate, people.owner, id="fraud", name="Fraud"),
        make_project(people.stranger, id="secret", name="Secret"),
    ]
    tier, environment = make_tier("small"), make_environment()
    owners = [people.owner, people.teammate, people.stranger]
    Execution.objects.bulk_create(
        Execution(
            id=f"e{number:04}", kind="job", title="needle" if number % 160 == 7 else "hay", owner=owners[number % 3],
            # Somebody who has left a project still sees what was his.
            project=projects[number * 7 // 4 % 3], **on_tier(tier), environment=environment,
            state=State.RUNNING if number % 50 == 0 else State.FAILED,
            ended_at=None if number % 50 == 0 else MOMENT - timedelta(minutes=number // 3),
        )
        for number in range(480)
    )  # fmt: skip
    return people


@pytest.fixture
def history(db: None, written: People) -> People:
    return written


def seen_by(user: User) -> Viewer:
    viewer = viewer_of(user)
    assert viewer is not None
    return viewer


def expected(viewer: Viewer, **wanted: object) -> list[str]:
    visible = visible_executions(viewer).filter(ended_at__isnull=False, **wanted)
    return list(visible.distinct().order_by("-ended_at", "-pk").values_list("pk", flat=True))


def ids(rows: object) -> list[str]:
    return [row.pk for row in rows]  # type: ignore[attr-defined]


@pytest.mark.parametrize("who", ["owner", "stranger", "operator"])
@pytest.mark.parametrize(("text", "searched"), [("", 5000), ("hay", 5000), ("hay", 60), ("needle", 60)])
def test_pages_forward_hold_each_visible_execution_once(history: People, who: str, text: str, searched: int) -> None:
    viewer = seen_by(getattr(history, who))
    shown: list[str] = []
    before = ""
    for _ in range(100):
        page = ended_page(viewer, ExecutionsView(show="ended", text=text, before=before), searched=searched)
        assert len(page.rows) <= PER_PAGE
        shown += ids(page.rows)
        if not page.older:
            break
        before = page.older
    else:
        pytest.fail("the history has no end")
    assert shown == expected(viewer, **({"title": text} if text else {}))


@pytest.mark.parametrize("text", ["hay", "needle"])
def test_older_from_a_backward_page_shows_what_stood_there(history: People, text: str) -> None:
    """Wherever somebody turns round: nothing is lost between a page and the older one behind it."""
    viewer = seen_by(history.operator)
    wanted = expected(viewer, title=text)
    newer = ended_page(viewer, ExecutionsView(show="ended", text=text, before="2001-01-01T00:00:00+00:00~a")).newer
    turns = 0
    while newer and turns < 50:
        back = ended_page(viewer, ExecutionsView(show="ended", text=text, after=newer), searched=60)
        rest, older = ids(back.rows), back.older
        while older:
            page = ended_page(viewer, ExecutionsView(show="ended", text=text, before=older), searched=60)
            rest, older = rest + ids(page.rows), page.older
        assert rest == wanted[len(wanted) - len(rest) :]
        newer, turns = back.newer, turns + 1
    assert rest == wanted


@pytest.mark.parametrize("filter", [{"project": "fraud"}, {"user": "bob"}, {"status": "failed"}, {"user": "nobody"}])
def test_filters_choose_among_what_is_visible(history: People, filter: dict[str, str]) -> None:
    columns = {"project": "project", "user": "owner__username", "status": "state"}
    for user in (history.owner, history.stranger, history.operator):
        viewer = seen_by(user)
        page = ended_page(viewer, ExecutionsView(show="ended", **filter))  # type: ignore[arg-type]
        wanted = expected(viewer, **{columns[name]: value for name, value in filter.items()})
        assert ids(page.rows) == wanted[:PER_PAGE]


@pytest.mark.parametrize(
    ("text", "matches"), [("NEEDLE", 3), ("e0167", 1), ("nee%le", 0), ("ee", 3), ("small", 470), ("Fraud", 156)]
)
def test_text_is_found_whatever_it_is_found_in(history: People, text: str, matches: int) -> None:
    viewer = seen_by(history.operator)
    count, before = 0, ""
    while True:
        page = ended_page(viewer, ExecutionsView(show="ended", text=text, before=before))
        count, before = count + len(page.rows), page.older
        if not before:
            break
    assert count == matches


@ON_POSTGRESQL
def test_postgresql_plans_each_search_for_its_text(history: People) -> None:
    viewer = seen_by(history.operator)
    for text in ["hay"] * 15 + ["needle"] * 5:
        ended_page(viewer, ExecutionsView(show="ended", text=text))
    with connection.cursor() as cursor:
        prepared = "FROM pg_prepared_statements WHERE statement LIKE '%grid_execution%'"
        cursor.execute(f"SELECT sum(generic_plans), sum(custom_plans) > 0 {prepared}")
        assert cursor.fetchall() == [(0, True)]


@ON_POSTGRESQL
def test_postgresql_finds_rare_text_in_history_by_index(history: People) -> None:
    some = Execution.objects.filter(ended_at__isnull=False)[0]
    Execution.objects.bulk_create(
        Execution(
            id=f"f{number:05}", kind="job", title=f"hay of bale {number}", owner=some.owner, project=some.project,
            environment=some.environment, state=State.FAILED, ended_at=MOMENT + timedelta(minutes=number), **on_tier(some.tier),
        )
        for number in range(6000)
    )  # fmt: skip
    with connection.cursor() as cursor:
        # As autovacuum does in time: what other tests left in the index makes it dear to ask.
        cursor.execute("REINDEX INDEX history_by_text")
        cursor.execute("ANALYZE grid_execution")
        with CaptureQueriesContext(connection) as queries:
            page = ended_page(seen_by(history.operator), ExecutionsView(show="ended", text="needle"), searched=50)
        assert (len(page.rows), page.older, page.searched_to) == (3, "", None)
        asked = [query["sql"] for query in queries.captured_queries if query["sql"].startswith("SELECT")]
        # Reading 6,000 rows, in their order or in an index's, may be cheaper than asking the index of texts four times.
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_indexscan = off")
        cursor.execute(f"EXPLAIN {asked[-1]}")
        plan = "\n".join(row for (row,) in cursor.fetchall())
        assert "history_by_text" in plan, plan
