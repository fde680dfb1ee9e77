"""The autoscaler's story: one line for each cause, however many pods it is told of."""

from typing import Any

from dashboard.nodes.viewmodels.infrastructure import ActivityLine, activity
from dashboard.shell.fragments import render_fragment
from grid.kube.objects import Event
from tests.support import builders
from tests.support.builders import MOMENT, decode
from tests.support.golden import assert_golden


def event(name: str, about: str, reason: str, message: str, **fields: Any) -> Event:
    raw = builders.event(name, about=builders.pod(about), reason=reason, message=message, **fields)
    return decode(raw, Event)


def test_same_event_of_many_pods_is_a_counted_line() -> None:
    same = [
        event(f"e{number}", f"worker-{number}", "NotTriggerScaleUp", "max node group size reached")
        for number in range(18)
    ]
    (line,) = (fragment.context for fragment in activity([*same, same[-1]]))
    assert isinstance(line, ActivityLine)
    assert (line.count, line.reason) == ("18 pods", "NotTriggerScaleUp")
    assert [name for _, _, name in line.objects] == ["worker-17", "worker-16", "worker-15"]


def test_a_cause_keeps_its_id_while_more_pods_come() -> None:
    first = event("e1", "worker-1", "NotTriggerScaleUp", "no <group> fits")
    second = event("e2", "worker-2", "NotTriggerScaleUp", "no <group> fits")
    (before,), (after,) = activity([first]), activity([first, second])
    assert before.id == after.id
    html = render_fragment(after, now=MOMENT)
    assert "no &lt;group&gt; fits" in html
    assert_golden("activity-cause", html)
