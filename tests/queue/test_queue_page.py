"""The queue page: who sees whom, what operators do, and what the owner reads."""

from dataclasses import replace
from datetime import timedelta

import pytest

from dashboard.queue.viewmodels.waiting import queue_fragments, queue_row
from dashboard.shell.fragments import render_fragment
from dashboard.starts.viewmodels.expected_wait import wait_line
from grid.models import AuditEntry, State
from grid.queue.wait_estimate.inputs import WaitEstimate
from grid.runtime import Runtime
from tests.conftest import People
from tests.executions.executing import ROW, make_execution, make_project, read_executions
from tests.shell.browsing import client_of
from tests.support.builders import MOMENT
from tests.support.golden import assert_golden


@pytest.fixture
def two(people: People, runtime: Runtime) -> dict[str, str]:
    """One that the owner waits for, and one of a stranger, by title."""
    ours = make_execution(people.owner, make_project(people.owner, people.teammate), state=State.QUEUED, title="Ours")
    theirs = make_execution(
        people.stranger, make_project(people.stranger, id="other"), state=State.QUEUED, title="Theirs"
    )
    read_executions(runtime)
    return {"Ours": ours.pk, "Theirs": theirs.pk}


def test_people_see_their_own_position_and_operators_see_all(two: dict[str, str], people: People) -> None:
    own = client_of(people.owner).get("/queue/").text
    assert "Ours" in own and "Theirs" not in own
    assert "charlie" not in own
    assert "1 execution waits for a slot that you may see, and 1 of others." in own
    assert "When it starts is not known yet: too few launches like this one have started." in own
    assert "/queue/" + two["Ours"] not in own
    every = client_of(people.operator).get("/queue/").text
    assert "Ours" in every and "Theirs" in every and "/queue/" + two["Ours"] in every
    assert "2 executions wait for a slot." in every


def test_owner_reads_which_operator_holds_and_why(two: dict[str, str], people: People, runtime: Runtime) -> None:
    client = client_of(people.operator)
    answer = client.post(f"/queue/{two['Ours']}/", {"do": "hold", "reason": "The licence server is down"})
    assert answer.status_code == 302
    read_executions(runtime)
    held = "Held by olga-operator: The licence server is down. This starts when an operator releases it, and does not time out before."
    assert held in client_of(people.owner).get(f"/executions/{two['Ours']}/").text
    assert AuditEntry.objects.get(object_id=two["Ours"]).actor_name == "olga-operator"
    page = client.get(f"/queue/{two['Ours']}/").text
    assert held in page and "Release it" in page and "Hold it" not in page


@pytest.mark.parametrize("page", ["/queue/", "/executions/", "/executions/{id}/"])
def test_only_the_owner_reads_of_what_you_use(page: str, people: People, runtime: Runtime) -> None:
    project = make_project(people.owner, people.teammate)
    sentence = "You use 25 of 25 slots; this starts by itself when one is free. It is number 1 of yours."
    values = {"held": 25, "most": 25, "slots": 1, "parts": [["workspace", 1]], "position": 1}
    row = make_execution(
        people.owner, project, state=State.QUEUED, reason="over_user_slots", reason_values=values, message=""
    )
    read_executions(runtime)
    path = page.format(id=row.pk)
    assert sentence in client_of(people.owner).get(path).text
    assert "You use" not in client_of(people.operator).get(f"/queue/{row.pk}/").text
    for other in (people.teammate, people.operator, people.admin):
        text = client_of(other).get(path).text
        assert "You use" not in text
        assert f"{people.owner.get_username()} uses 25 of 25 slots; this starts by itself when one is free." in text


def test_an_expected_wait_is_said_in_few_words() -> None:
    def sentence_of(*values: float | None, passed: float = 0) -> str:
        line = wait_line(WaitEstimate(*values), passed)  # type: ignore[arg-type]
        assert line is not None
        return line.sentence

    assert sentence_of(250, 118, 545) == "Expected to start in about 4 min (2 min to 9 min)."
    assert sentence_of(42, 20, 59, passed=10) == "Expected to start in about 30 s (10 s to 50 s)."
    assert sentence_of(250, 118, None) == "Expected to start in about 4 min (at least 2 min)."
    assert sentence_of(5, 1, 9, passed=60) == "Expected any moment."
    unknown = WaitEstimate(None, why="Not known yet: too few launches like this one have started.")
    shown = wait_line(unknown, 0)
    assert shown is not None
    assert shown.sentence == "When it starts is not known yet: too few launches like this one have started."


def test_the_queue_looks_as_stored() -> None:
    known = WaitEstimate(240.0, 120.0, 540.0, "1 execution before it.", 2)
    unknown = WaitEstimate(None, why="Not known yet: too few launches like this one have started.", position=1)
    values = {"held": 25, "most": 25, "slots": 1, "parts": [["workspace", 1]], "position": 1}
    waiting = replace(ROW, state="queued", title="<b>Mine</b>", reason="over_user_slots", reason_values=values)
    held = replace(
        waiting,
        id="e2",
        title="Held",
        reason="held",
        reason_values=None,
        message="Held by olga: The licence server is down.",
    )
    rows = [
        queue_row(waiting, unknown, 0.0, viewer_id=1, may_order=False),
        queue_row(replace(waiting, id="e3"), known, 0.0, viewer_id=9, may_order=True),
        queue_row(held, None, 0.0, viewer_id=9, may_order=True),
    ]
    page = queue_fragments(rows, count=4, hidden=2, accuracy="9 of the last 10 expected waits were right.")
    nothing = [fragment for hidden in (0, 2) for fragment in queue_fragments([], count=0, hidden=hidden, accuracy="")]
    now = MOMENT + timedelta(minutes=5)
    assert_golden("queue", "\n".join(render_fragment(fragment, now=now) for fragment in (*page, *nothing)))
