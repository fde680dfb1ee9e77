"""How periodic tasks are judged and shown: well, failing, late, and what the page and its light say of them."""

from datetime import timedelta

import pytest

from dashboard.platformhealth.viewmodels.platform_page import task_lines
from grid.database.periodic import TaskRecord
from grid.platformhealth.taskhealth import LATE_SECONDS, light, task_state
from tests.support.builders import MOMENT
from tests.support.platform import tasks_at


def test_worst_tasks_stand_first_with_their_reasons() -> None:
    lines = task_lines(tasks_at(MOMENT), MOMENT)
    assert [(line.name, line.status.severity, line.status.word) for line in lines] == [
        ("clean-up", "problem", "Late"),
        ("silences", "problem", "Fails"),
        ("node tasks", "wait", "Fails"),
        ("schedules", "neutral", "Not begun"),
        ("budgets", "ok", "Works"),
    ]
    assert lines[0].sentence.startswith("Its run began 100 min ago and has not ended.")
    assert lines[1].sentence.startswith("Failed 40 times in a row since ")
    assert "<Alertmanager> does not answer." in lines[1].sentence
    assert (lines[4].every, lines[4].took, lines[4].failures) == ("1 min", "0.25 s", 0)


@pytest.mark.parametrize(("late", "severity"), [(0.0, "ok"), (61.0, "wait"), (LATE_SECONDS, "problem")])
def test_overdue_task_turns_amber_then_red(late: float, severity: str) -> None:
    due_at = MOMENT - timedelta(seconds=late)
    task = TaskRecord("budgets", 60.0, started_at=MOMENT - timedelta(hours=1), succeeded_at=MOMENT, due_at=due_at)
    assert task_state(task, MOMENT).severity == severity


def test_light_is_red_for_lasting_trouble_only() -> None:
    well, _failing, failing_now, _hanging, _new = tasks_at(MOMENT)
    red = light(tasks_at(MOMENT), MOMENT)
    assert red.severity == "problem" and "silences" in red.sentence and "clean-up" in red.sentence
    amber = light([well, failing_now], MOMENT)
    assert (amber.severity, amber.sentence) == ("ok", "Fails or is slow now, and is tried again: node tasks.")
    assert light([well], MOMENT).sentence == "1 task runs on time."
