"""The history of executions: every page by index, for whoever may see it; restarts and exit codes that are kept when the pod goes."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from dashboard.executions.history import PER_PAGE, ended_page
from dashboard.executions.records import visible_executions
from dashboard.executions.viewmodels.executions_view import ExecutionsView
from dashboard.shell.access import Viewer, viewer_of
from grid.diagnosis.exits import code_words
from grid.executions.progress import columns_from_status
from grid.executions.stopping import request_stop
from grid.kube.objects import Pod
from grid.kube.resources import PODS
from grid.models import Execution, State, User
from tests.clusters.test_cluster_life import notes
from tests.conftest import People, make_people
from tests.controller.world import World, fresh, in_world, running, to_running
from tests.executions.executing import make_environment, make_project, make_tier
from tests.support.builders import MOMENT, condition, container_status, decode, pod, stamp
from tests.support.database import ON_POSTGRESQL
from tests.support.frozen import on_tier
from tests.support.shop import OWNER, Shop

ENDED = ExecutionsView(show="ended")
DIGEST = "docker.io/library/python@sha256:" + "a" * 64
KILLED = {"terminated": {"exitCode": 143, "reason": "Error"}}


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


def ended(world: World, execution: Execution, *, restarts: int, **end: Any) -> None:
    """Its program has ended and runs again."""
    pod = world.pod_of(execution)
    last = {"terminated": {"finishedAt": stamp(world.now), **end}}
    pod["status"]["containerStatuses"] = [container_status(ready=True, restarts=restarts, lastState=last)]
    pod["status"]["conditions"] = [condition("Ready", "True")]
    world.cluster.put(PODS, pod)


@in_world
async def test_memory_kill_is_in_history_once_with_its_count(shop: Shop) -> None:
    world, controller, execution = await running(shop)
    world.passes(60)
    ended(world, execution, restarts=1, exitCode=137, reason="OOMKilled")
    for _ in range(2):
        await world.step(controller)
    assert fresh(execution).state == "running"
    (line,) = notes(execution, "out_of_memory")
    assert line.words(OWNER).startswith(
        "The program used more memory than its limit of 4 GiB and was ended. It is started"
    )
    assert (line.level, line.at, line.count) == ("Warning", world.now, 1)

    ended(world, execution, restarts=3, exitCode=137, reason="OOMKilled")
    for each in (controller, world.controller()):
        await world.step(each)
    (line,) = notes(execution, "out_of_memory")
    assert line.count == 3
    assert "It was started again 3 times in all." in line.words(OWNER)


@pytest.mark.parametrize(("end", "entries"), [({"exitCode": 1, "reason": "Error"}, 1), ({"exitCode": 0}, 0)])
@in_world
async def test_other_bad_end_is_told_too_unlike_good_one(shop: Shop, end: dict[str, Any], entries: int) -> None:
    world, controller, execution = await running(shop)
    ended(world, execution, restarts=1, **end)
    await world.step(controller)
    lines = notes(execution, "restarted")
    assert len(lines) == entries
    assert all("exit code 1" in line.words(OWNER) for line in lines)


def job(shop: Shop) -> Execution:
    return shop.launch(kind="job", environment=shop.job)


@in_world
async def test_running_image_is_kept_as_the_kubelet_names_it(shop: Shop) -> None:
    world, execution = World(), job(shop)
    controller = world.controller()
    await world.step(controller)
    world.behave()
    await world.step(controller)
    world.start(world.pod_of(execution))
    started = world.pod_of(execution)
    started["status"]["containerStatuses"] = [container_status(ready=True, imageID=DIGEST)]
    world.cluster.put(PODS, started)
    await world.step(controller)
    assert (fresh(execution).state, execution.image_id, execution.exit_code) == ("running", DIGEST, None)


@in_world
async def test_stopped_job_has_the_exit_code_of_its_program(shop: Shop) -> None:
    """The pod is gone when the end is written; its last state is what counts."""
    world, execution = World(), job(shop)
    controller = world.controller()
    await to_running(world, controller)
    request_stop(fresh(execution), by="alice", now=world.now)
    world.refresh(controller)
    await controller.poll()
    while fresh(execution).state != "stopping":
        await controller.work()
    ending = world.pod_of(execution)
    ending["status"]["containerStatuses"] = [container_status(state=KILLED)]
    world.cluster.put(PODS, ending)
    world.refresh(controller)  # the watch tells of the end, and before anybody looks, that the pod is gone
    world.cluster.remove(PODS, execution.object_name, namespace=ending["metadata"]["namespace"])
    await world.step(controller)
    await world.step(controller)
    assert (fresh(execution).state, execution.exit_code) == ("stopped", 143)


def test_sidecar_says_nothing_about_the_end_of_program() -> None:
    sidecar = pod("job-a", statuses=[container_status("nginx", state=KILLED, imageID=DIGEST)])
    assert columns_from_status(decode(sidecar, Pod)) == {}


@pytest.mark.parametrize(
    ("code", "words"),
    [(1, "1"), (137, "137, it was killed (SIGKILL)"), (136, "136, a signal ended it (SIGFPE)"), (-1, "-1")],
)
def test_exit_code_of_a_signal_is_put_into_words(code: int, words: str) -> None:
    assert code_words(code) == words
