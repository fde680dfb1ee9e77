"""One execution in words: state, head, steps, cost, timeline and log source, and the stored HTML of each visual state."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from dashboard.executions.viewmodels.execution import (
    CONTRIBUTING,
    ExecutionRecord,
    Facts,
    Person,
    facts,
    head_of,
    steps,
)
from dashboard.executions.viewmodels.execution_actions import actions
from dashboard.executions.viewmodels.executions_view import ExecutionsView
from dashboard.executions.viewmodels.timeline import lifecycle_text, timeline
from dashboard.home.viewmodels.my_executions import my_executions
from dashboard.logs.viewmodels.log import LogQuery, log_source
from dashboard.shell.fragments import render_fragment
from dashboard.shell.viewmodels.format import size_words, span
from dashboard.shell.viewmodels.states import (
    ACTIVE_STATES as ACTIVE_WORDS,
    ENDED_STATES as ENDED_WORDS,
    STARTED,
    StatusLine,
    state_status,
)
from dashboard.starts.viewmodels.expected_wait import WaitLine
from dashboard.starts.viewmodels.startup import StartMeasures
from dashboard.usage.viewmodels.usage import Spending, price_words
from dashboard.workspaces.viewmodels.workspaces import WorkspaceExecution, WorkspaceRecord
from grid.core.wording import money
from grid.diagnosis.diagnosis import Diagnosis
from grid.diagnosis.logfindings import LogFinding
from grid.diagnosis.startup import Phase
from grid.kube.objects import Event, Node, Pod, RawObject
from grid.models import Membership, State
from grid.models.execution import ACTIVE_STATES, FINAL_STATES
from grid.runtime.executionrows import ExecutionRow
from tests.executions.executing import RECORD, ROW, entered, head_fragment, pod_of
from tests.executions.execution_listing import execution_rows
from tests.executions.test_executions_viewmodel import BAD, source
from tests.support import builders
from tests.support.builders import MOMENT, decode
from tests.support.golden import assert_golden

OWNER = Person(may_open=True, may_stop=True, is_operator=False, contributes=True, is_owner=True)
OPERATOR = Person(may_open=False, may_stop=True, is_operator=True, sees_all=True)
MEMBER = Person(may_open=False, may_stop=False, is_operator=False, contributes=True)
WAITS = Diagnosis("scaling_up", "A new node is being started for you.", "wait", "", "Nothing to do.", ("0->1",))
NOW = MOMENT + timedelta(minutes=30)
RUNS = Diagnosis("running", "Running.", "ok", "")


def after(minutes: float, **fields: object) -> ExecutionRecord:
    """The record that many minutes after its launch, with the history of its way there."""
    way = ("queued", "deploying", "preparing", "running")
    state = str(fields.get("state", "running"))
    passed = way[: way.index(state) + 1] if state in way else (*way, state)
    history = tuple(entered(each, minute=minutes * place / len(passed)) for place, each in enumerate(passed))
    since = history[-1].at
    started = history[3].at if len(history) > 3 else None
    spending = Spending(running=((RECORD.cost_per_hour, started),)) if started else Spending()
    values = {"state_since": since, "lifecycle": history, "started_at": started, "spending": spending}
    return replace(RECORD, **{**values, **fields})  # type: ignore[arg-type]


QUEUED = after(1, state="queued", message="You use 25 of 25 slots; this starts by itself when one is free.")
DEPLOYING = after(4, state="deploying", message="A slot was free.")
RUNNING = after(20, state="running")
STOPPING = replace(RUNNING, stop_requested_at=NOW, stop_requested_by="alice")
FAILED = after(25, state="failed", kind="job", message="It used more memory than its tier has.", ended_at=NOW)
STATES = {"queued": QUEUED, "deploying": DEPLOYING, "running": RUNNING, "failed": FAILED}


def page_of(record: ExecutionRecord, diagnosis: Diagnosis | None = None) -> str:
    whole = [
        head_fragment(record, diagnosis, OWNER),
        actions(record, OWNER, is_ready=True),
        steps(record),
        facts(record, OWNER, pods=[("compute-grid", "workspace-e1")], node="", now=NOW),
    ]
    return "\n".join(render_fragment(fragment, now=NOW) for fragment in whole)


@pytest.mark.parametrize("name", STATES)
def test_each_state_looks_as_stored(name: str) -> None:
    assert_golden(f"execution-{name}", page_of(STATES[name], {"deploying": WAITS}.get(name)))


def test_log_finding_looks_as_stored() -> None:
    finding = LogFinding(
        "own", "The licence “<b>” is in use.", "LIC-17: <b>", "Wait for one.", "https://wiki.example/licences"
    )
    record = replace(FAILED, findings=(finding, replace(finding, meaning=FAILED.message, link="")))
    assert_golden("execution-findings", render_fragment(head_fragment(record, None, OWNER), now=NOW))
    assert "LIC-17" not in render_fragment(
        head_fragment(record, None, Person(False, False, False, has_left=True)), now=NOW
    )


def test_the_rows_look_as_stored() -> None:
    running = pod_of("e1", node="node-a", phase="Running", ready=True)
    cluster = replace(ROW, id="e2", kind="cluster", title="Dask", object_name="cluster-e2", message="")
    member = pod_of("e2", name="worker-1", node="node-a")
    queued = replace(ROW, id="e3", state="queued", message="You use 25 of 25 slots.", title="<b>bold</b>")
    whole = source(
        ROW,
        cluster,
        queued,
        pods=[running, member, pod_of("e2", name="worker-2")],
        explained={"worker-1": BAD},
        sees_all=True,
    )
    rows = execution_rows(whole, ExecutionsView(), NOW)
    assert_golden("execution-rows", "\n".join(render_fragment(row, now=NOW) for row in rows))
    nothing = execution_rows(source(), ExecutionsView(), NOW)
    no_match = execution_rows(source(ROW), ExecutionsView(user="bob"), NOW)
    assert_golden("executions-none", "\n".join(render_fragment(row, now=NOW) for row in (*nothing, *no_match)))


def test_the_first_page_shows_ones_own_as_stored() -> None:
    failed = replace(ROW, id="e2", kind="job", state="failed", message="Out of memory.", requested_at=NOW)
    running = replace(ROW, title="Explore", workspace_id="w1")
    queued = replace(ROW, id="e4", title="Waits", state="queued", message="You use 25 of 25 slots.", workspace_id="w4")
    earlier = replace(ROW, id="e0", title="An earlier execution", state="stopped", workspace_id="w3")
    execution = WorkspaceExecution("e3", "stopped", NOW, "Stopped by alice.")
    stopped = WorkspaceRecord(
        id="w3", name="Churn <2>", title="Churn <2>", owner_id=1, owner_username="alice", project_id="churn", project_name="Churn",
        project_roles={1: "owner"}, environment_name="JupyterLab", tier_name="Small", created_at=MOMENT,
        launched_at=MOMENT, latest=execution,
    )  # fmt: skip
    known = [stopped, replace(stopped, id="w1", name="Passed over, it runs")]
    shown = my_executions([failed, running, queued, earlier], known, plain_status, NOW)
    assert_golden("my-executions", render_fragment(shown, now=NOW))
    assert_golden("my-executions-none", render_fragment(my_executions([], [], plain_status, NOW), now=NOW))


def plain_status(row: ExecutionRow) -> tuple[StatusLine, str]:
    return state_status(row.state, message=row.message)


def test_the_head_prefers_what_the_pod_shows_now() -> None:
    shown = head_of(DEPLOYING, BAD, OWNER)
    assert (shown.status.severity, shown.status.note, shown.advice) == ("problem", BAD.sentence, BAD.next_step)


def test_no_start_is_expected_beside_a_problem() -> None:
    """Waiting does not end it; beside a mere wait the time stands."""
    expected = WaitLine("Expected to start in about 4 min.", "")
    shown = head_of(DEPLOYING, BAD, OWNER, expected)
    assert (shown.status.note, shown.wait) == (BAD.sentence, None)
    waits = head_of(DEPLOYING, replace(BAD, severity="wait"), OWNER, expected)
    assert waits.wait == expected


def test_open_is_suggested_only_to_those_allowed() -> None:
    notes = [head_of(RUNNING, None, person).status.note for person in (OWNER, OPERATOR)]
    assert notes == ["It is ready: open it.", "It is ready. Only alice can open it."]


def buttons(record: ExecutionRecord, person: Person, *, is_ready: bool = True) -> str:
    shown: Any = actions(record, person, is_ready=is_ready).context
    return f"open: {shown.shows_open}, stop: {shown.shows_stop}. {shown.why_not_open if shown.shows_open else ''}"


def test_buttons_are_shown_as_stored() -> None:
    records = STATES | {"stopping": STOPPING, "running job": replace(RUNNING, kind="job")}
    people = {"owner": OWNER, "operator": OPERATOR, "member": MEMBER}
    shown = {
        f"{state}, {who}": buttons(record, person)
        for state, record in records.items()
        for who, person in people.items()
    }
    shown["running, owner, no answer"] = buttons(RUNNING, OWNER, is_ready=False)
    shown["deploying, owner, no answer"] = buttons(DEPLOYING, OWNER, is_ready=False)
    assert_golden("execution-buttons", "\n".join(f"{state}: {words}" for state, words in shown.items()), ending="txt")


def places(record: ExecutionRecord) -> list[tuple[str, str, str]]:
    return [(step.word, step.place, step.took) for step in steps(record).context]  # type: ignore[attr-defined]


def test_end_and_stop_have_their_own_steps() -> None:
    record = replace(QUEUED, state="error", lifecycle=(entered("queued"), entered("error", minute=1)))
    assert [(word, place) for word, place, _ in places(record)] == [
        ("Queued", "done"), ("Deploying", "skipped"), ("Preparing", "skipped"), ("Running", "skipped"), ("Error", "problem"),
    ]  # fmt: skip
    stopping = replace(RUNNING, state="stopping", lifecycle=(*RUNNING.lifecycle, entered("stopping", minute=28)))
    assert [(word, place) for word, place, _ in places(stopping)][-2:] == [("Stopping", "now"), ("Stopped", "todo")]


def test_cost_counts_the_seconds_of_pods_on_nodes() -> None:
    worker = Decimal("0.60")
    spending = Spending(ended=((worker, 3600), (Decimal("0.10"), 1800)), running=((worker, MOMENT),))
    assert spending.until(MOMENT) == Decimal("0.65")
    assert spending.until(MOMENT + timedelta(minutes=10, seconds=6)) == Decimal("0.751")
    assert spending.until(MOMENT - timedelta(hours=1)) == Decimal("0.65"), "a clock that is behind takes nothing back"


def test_execution_that_never_held_a_node_cost_nothing() -> None:
    stopped = replace(QUEUED, state="stopped", ended_at=NOW)
    assert [cost(QUEUED), cost(stopped), cost(replace(RUNNING, spending=Spending()))] == [
        "nothing yet", "nothing", "nothing yet",
    ]  # fmt: skip


def cost(record: ExecutionRecord) -> str:
    shown = facts(record, OWNER, pods=[], node="", now=NOW).context
    assert isinstance(shown, Facts)
    return shown.cost


PRICES = [Decimal(text) for text in ("0", "0.05", "0.0500", "0.0125", "2")]
SUMS = [Decimal(text) for text in ("0", "0.001", "0.309", "12345.6")]


def test_prices_sizes_and_spans_are_worded_as_stored() -> None:
    words = [f"{price} per hour: {price_words(price)}" for price in PRICES]
    words += [f"{amount}: {money(amount)}" for amount in SUMS]
    words += [size_words(3500, 14 * 2**30, 1, "2Gi"), size_words(1000, 2**29, 0)]
    words += [f"{seconds} seconds: {span(seconds)}" for seconds in (-3, 42, 432, 3600, 11100)]
    assert_golden("words-of-amounts", "\n".join(words), ending="txt")


def headlines(record: ExecutionRecord, events: list[RawObject], nodes: list[RawObject], node: str = "") -> list[str]:
    items = timeline(
        record, [decode(raw, Event) for raw in events], [decode(raw, Node) for raw in nodes], assigned_node=node
    )
    return [item.context.headline for item in items]  # type: ignore[attr-defined]


def test_story_of_a_new_machine_is_told_newest_first() -> None:
    pod = pod_of("e1")

    def event(name: str, reason: str, minute: float) -> RawObject:
        return builders.event(name, about=pod, reason=reason, at=MOMENT + timedelta(minutes=minute))

    events = [event("a", "TriggeredScaleUp", 1), event("b", "Pulling", 5), event("c", "Started", 7)]
    ready = [builders.condition("Ready", "True", at=MOMENT + timedelta(minutes=4))]
    node = builders.node("gpu-1", created=MOMENT + timedelta(minutes=3), conditions=ready)
    old = builders.node("old", created=MOMENT - timedelta(days=1))
    record = replace(DEPLOYING, lifecycle=(entered("queued"), entered("deploying", minute=0.5)))
    assert headlines(record, events, [node, old]) == [
        "Program started", "Pulling the image", "The new node is ready", "A new node joined",
        "New node requested", "Deploying", "Queued",
    ]  # fmt: skip
    assert "A new node joined" not in headlines(record, events, [node], node="another")
    assert "A new node joined" not in headlines(FAILED, [], [node])


def test_event_both_stored_and_live_is_told_once() -> None:
    live = decode(builders.event("ev", about=pod_of("e1"), reason="BackOff", count=9), Event)
    stored = entered("", reason="BackOff", event_uid=live.metadata.uid, count=3, about="Pod/workspace-e1")
    record = replace(RECORD, lifecycle=(stored,))
    (only,) = timeline(record, [live], [], assigned_node="")
    assert only.context.times == 9  # type: ignore[attr-defined]
    (kept,) = timeline(record, [], [], assigned_node="")
    assert (kept.id, kept.context.times) == (only.id, 3)  # type: ignore[attr-defined]


@pytest.mark.parametrize(("reason", "times"), [("worker_out_of_memory", 1), ("worker_restarted", 1), ("BackOff", 3)])
def test_starts_of_a_program_are_not_shown_as_ends(reason: str, times: int) -> None:
    line = entered("", about="Pod/worker", reason=reason, message="What happened.", count=3, event_uid="u")
    record = replace(RECORD, lifecycle=(line,))
    (item,) = timeline(record, [], [], assigned_node="")
    assert item.context.times == times  # type: ignore[attr-defined]
    assert ("3 times" in lifecycle_text(record)) is (times == 3)


def test_hostile_text_cannot_add_lines_to_the_lifecycle_log() -> None:
    record = replace(RECORD, title="a\nb", lifecycle=(entered("failed", message="one\n2026-01-01T00:00:00Z  fake"),))
    assert len(lifecycle_text(record).splitlines()) == 2


def test_lifecycle_log_tells_the_start_in_one_line() -> None:
    start = StartMeasures(total=50, seconds={Phase.QUEUED: 2, Phase.PULLING: 48}, image_cached=False)
    lines = lifecycle_text(replace(RECORD, lifecycle=(entered("running"),), start=start)).splitlines()
    assert lines[-1] == "# Start-up: 50 s: waiting for a slot 2.0 s, image pull 48 s (an image was not on the node)."


def test_log_comes_from_the_main_container_unless_asked_otherwise() -> None:
    containers = [{"name": "run"}, {"name": "nginx"}]
    pods = [
        decode(pod_of("e1", name="worker-1", containers=containers), Pod),
        decode(pod_of("e1", containers=containers, statuses=[builders.container_status("run", ready=True)]), Pod),
    ]

    def chosen(pod: str, container: str) -> tuple[str, str, bool]:
        source = log_source(pods, LogQuery(pod=pod, container=container), main="workspace-e1")
        assert source is not None
        return source.pod, source.container, source.has_started

    assert chosen("", "") == ("workspace-e1", "run", True)
    assert chosen("worker-1", "nginx") == ("worker-1", "nginx", False)
    assert chosen("../secrets", "nonsense") == ("workspace-e1", "run", True)
    assert log_source([], LogQuery(), main="x") is None


def test_contributors_are_the_same_on_pages_and_in_database() -> None:
    assert frozenset(Membership.CONTRIBUTING) == CONTRIBUTING


def test_each_state_has_the_word_of_the_model() -> None:
    assert {state: word for state, word in State.choices if state in ACTIVE_STATES} == ACTIVE_WORDS
    assert {state: word for state, word in State.choices if state in FINAL_STATES} == ENDED_WORDS


@pytest.mark.parametrize("state", ["deploying", "preparing"])
def test_started_pod_is_not_called_running_before_its_state(state: str) -> None:
    status, advice = state_status(state, diagnosis=RUNS)
    assert (status.severity, status.note, advice) == ("wait", STARTED, "")


@pytest.mark.parametrize("state", ["stopping", "finishing"])
def test_ending_pod_is_not_called_running(state: str) -> None:
    assert state_status(state, diagnosis=RUNS) == state_status(state)
