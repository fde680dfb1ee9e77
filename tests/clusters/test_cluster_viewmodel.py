"""A cluster in words and cells: stored states, the autoscaler's reasons, samples over time, costs."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any, cast

import pytest
from hypothesis import given, strategies as st

from dashboard.clusters.viewmodels.autoscaling import autoscaling, condition_lines
from dashboard.clusters.viewmodels.clusters import Trouble, troubles
from dashboard.clusters.viewmodels.samples import SamplePoint, cause_in_words, scale_events, thinned
from dashboard.clusters.viewmodels.workers import WorkerCell, worker_cells
from dashboard.executions.viewmodels.execution import KindRecord, Person, facts
from dashboard.executions.viewmodels.execution_actions import Actions, actions
from dashboard.executions.viewmodels.timeline import timeline
from dashboard.shell.fragments import render_fragment
from dashboard.shell.viewmodels.listing import EmptyState
from dashboard.shell.viewmodels.live import Fragment
from dashboard.usage.viewmodels.usage import Spending
from grid.clusters.changes import RESTARTABLE
from grid.core.labels import KEYS
from grid.diagnosis.clusters import ClusterSnapshot, explain_cluster, summary
from grid.diagnosis.diagnosis import Diagnosis, EvidenceRow, Who
from grid.kube.objects import Autoscaler, Event, RawObject
from grid.metrics.usage import Usage
from grid.models import State
from tests.clusters import clustering
from tests.clusters.clustering import autoscaler, head_pod, minutes, sample, waiting_worker, worker_pod
from tests.diagnosis.snapshots import LEAVING, member, pulling, ready, snapshot, starting
from tests.executions import executing
from tests.executions.executing import entered, head_fragment
from tests.support import builders
from tests.support.builders import MOMENT, condition, container_status, decode, stamp
from tests.support.golden import assert_golden

NOW = MOMENT + timedelta(minutes=5)
OWNER = Person(may_open=True, may_stop=True, is_operator=False, contributes=True, is_owner=True)
RECORD = replace(
    executing.RECORD, id="c", kind="cluster", title="Features", object_name="cluster-c", state="running", slots=6,
    cost_per_hour=Decimal("0.40"), started_at=MOMENT, kind_record=clustering.RECORD,
    spending=Spending(running=((Decimal("0.10"), MOMENT),)),
)  # fmt: skip
EMPTY = EmptyState("There are no workers yet.", "They come.")
_BROKEN = container_status(state={"waiting": {"reason": "ImagePullBackOff", "message": "not found"}})
BROKEN = member(worker_pod("c", "broken", ready=False, phase="Pending", statuses=[_BROKEN]))
_AGAIN = container_status(
    ready=True, restarts=2,
    lastState={"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": stamp(NOW)}},
)  # fmt: skip
_DOWN = member(
    head_pod("c", ready=False, statuses=[container_status(state={"waiting": {"reason": "CrashLoopBackOff"}})])
)
LOOKS: dict[str, ClusterSnapshot] = {
    "growing": snapshot(
        [
            member(worker_pod("c", "busy", cost=40, tasks=12, held=3 * 2**30)),
            member(worker_pod("c", "idle", cost=0, tasks=0)),
            pulling("pulls"),
            member(starting("starts")),
            member(waiting_worker("c", "waits")),
            LEAVING,
        ],
        desired=5,
    ),
    "starting": snapshot([], head=member(head_pod("c", node="", phase="Pending", ready=False))),
    "troubled": snapshot([member(worker_pod("c", "killed", statuses=[_AGAIN])), BROKEN], head=_DOWN),
    "full": snapshot(
        ready(3), maximum=3, autoscaler=decode(autoscaler("c", maximum=3, current=3, desired=3, cpu=97), Autoscaler)
    ),
}


def used(key: str) -> Usage | None:
    return Usage(1660, 2 * 2**30) if key.endswith(("busy", "r000")) else None


def cells(seen: ClusterSnapshot) -> list[Fragment]:
    return worker_cells(seen, used, KEYS.worker_report, empty=EMPTY, now=NOW)


@pytest.mark.parametrize("name", LOOKS)
def test_each_state_of_a_cluster_looks_as_stored(name: str) -> None:
    seen = LOOKS[name]
    diagnoses = explain_cluster(seen, now=NOW)
    whole = [
        head_fragment(
            RECORD, Diagnosis("cluster", summary(seen), diagnoses[0].severity if diagnoses else "ok", ""), OWNER
        ),
        actions(RECORD, OWNER, is_ready=seen.head_is_up),
        facts(RECORD, OWNER, pods=[], node="node-a", workers=seen.on_nodes, now=NOW),
        troubles(diagnoses, is_operator=False),
        *cells(seen),
        autoscaling(clustering.RECORD, seen.autoscaler, is_final=False),
    ]
    assert_golden(f"cluster-{name}", "\n".join(render_fragment(fragment, now=NOW) for fragment in whole))


@pytest.mark.parametrize(
    "written",
    [
        *("nonsense", "[]", '{"tasks": "many"}', '{"tasks": 3, "more": true}'),
        *(f'{{"bytes": {"9" * 400}}}', f'{{"tasks": {"9" * 400}}}', '{"tasks": -3, "bytes": -1}'),
    ],
)
def test_a_report_that_somebody_else_wrote_breaks_nothing(written: str) -> None:
    (cell,) = cells(snapshot([member(worker_pod("c", "odd", annotations={KEYS.worker_report: written}))]))
    assert isinstance(cell.context, WorkerCell)
    assert cell.context.tasks in ("", "3 tasks")


def test_only_a_worker_beyond_the_minimum_goes_next() -> None:
    def next_to_go(seen: ClusterSnapshot) -> list[str]:
        return [
            fragment.context.short_name
            for fragment in cells(seen)
            if isinstance(fragment.context, WorkerCell) and fragment.context.goes_next
        ]

    dear, cheap = member(worker_pod("c", "dear", cost=9)), member(worker_pod("c", "cheap", cost=1))
    assert next_to_go(snapshot([dear, cheap], minimum=1)) == ["cheap"]
    assert next_to_go(snapshot([dear, cheap], minimum=2)) == []
    assert next_to_go(snapshot([dear, cheap, LEAVING], minimum=2)) == []


CONDITIONS = [
    ("AbleToScale", "True", "ReadyForNewScale"),
    ("AbleToScale", "True", "ScaleDownStabilized"),
    ("ScalingActive", "False", "FailedGetResourceMetric"),
    ("ScalingActive", "False", "ScalingDisabled"),
    ("ScalingLimited", "True", "TooManyReplicas"),
    ("ScalingLimited", "True", "ScaleUpLimit"),
    ("ScalingLimited", "True", "SomethingNew"),
    ("AbleToScale", "True", "SomethingNew"),
]


def of_conditions() -> list[str]:
    blocks = []
    for kind, status, reason in CONDITIONS:
        scaler = decode(autoscaler("c", conditions=[condition(kind, status, reason, "its own words")]), Autoscaler)
        (line,) = condition_lines(scaler, maximum=5)
        assert line.reason == reason
        blocks.append(f"# {kind} is {status}: {reason}\n{line.status.severity}: {line.status.word}")
    return blocks


def test_worker_number_is_not_called_right_while_tasks_wait() -> None:
    steady = autoscaler("c", conditions=[condition("AbleToScale", "True", "ReadyForNewScale", "its own words")])
    (waits,) = shown(replace(clustering.RECORD, pending_tasks=18), steady).conditions
    (rests,) = shown(replace(clustering.RECORD, pending_tasks=0), steady).conditions
    assert waits.status.word == "It can change the number of workers; the last measurement asked for no change."
    assert rests.status.word == "The number of workers is right for the load."
    assert waits.reason == rests.reason == "ReadyForNewScale"


def shown(cluster: Any, scaler: RawObject | None) -> Any:
    return autoscaling(cluster, decode(scaler, Autoscaler) if scaler else None, is_final=False).context


def of_numbers() -> dict[str, str]:
    record = clustering.RECORD
    demand = replace(record, on_demand=True, target_memory=0, pending_tasks=7)
    fixed = shown(replace(record, autoscale=False, workers_minimum=3, workers_maximum=3), autoscaler("c"))
    assert fixed.conditions == ()
    return {
        "3 workers, and 5 are wanted": shown(record, autoscaler("c", current=3, desired=5)).now,
        "5 workers, and 1 is wanted": shown(record, autoscaler("c", current=5, desired=1)).now,
        "2 workers, as wanted": shown(record, autoscaler("c", current=2, desired=2)).now,
        "nothing wanted": shown(record, autoscaler("c", desired=0)).now,
        "by the load": shown(record, None).sentence,
        "by CPU and by the tasks that wait": shown(demand, None).sentence,
        "7 tasks wait": shown(demand, None).demand,
        "no task waits": shown(replace(demand, pending_tasks=0), None).demand,
        "7 tasks wait, and only CPU counts": shown(replace(demand, on_demand=False, target_cpu=70), None).demand,
        "a fixed number": fixed.sentence,
    }


REASONS = (
    "external metric compute_grid_wanted_workers(nil) above target",
    "Current number of replicas below Spec.MinReplicas",
    "",
    "a reason of tomorrow",
)


def test_autoscaling_is_told_as_stored() -> None:
    numbers = [f"# {name}\n{words}" for name, words in of_numbers().items()]
    causes = [f"# rescaled, reason: {reason or 'none'}\n{cause_in_words(reason) or '(nothing)'}" for reason in REASONS]
    assert_golden("words-of-autoscaling", "\n".join([*of_conditions(), *numbers, *causes]), ending="txt")


def rescale(minute: float, size: int, reason: str, **fields: Any) -> Any:
    message = f"New size: {size}; reason: {reason}"
    return entered("", minute=minute, reason="SuccessfulRescale", message=message, event_uid=f"e{minute}", **fields)


ABOVE = "cpu resource utilization (percentage of request) above target"


def test_each_change_has_the_cause_that_the_history_tells() -> None:
    samples = [sample(0, ready=1, wanted=1), sample(1, ready=1, wanted=3), sample(2, ready=3, wanted=3), sample(3, ready=3, wanted=2),
               sample(9, ready=2, wanted=4)]  # fmt: skip
    lines = [
        rescale(0.9, 3, ABOVE),
        entered("", minute=3, reason="Resized", message="alice changed it from 1 to 5 workers to 1 to 2 workers."),
        entered("running", minute=0, message="not about workers"),
    ]
    assert [event.words for event in scale_events(samples, lines)] == [
        "Grows from 1 to 3 workers: CPU use is above its target.",
        "Shrinks from 3 to 2 workers: alice changed it from 1 to 5 workers to 1 to 2 workers.",
        "Grows from 2 to 4 workers.",
    ]


def test_change_that_kubernetes_only_counts_gets_its_cause() -> None:
    samples = [sample(minute, ready=1, wanted=wanted) for minute, wanted in ((0, 1), (1, 3), (9, 1), (30, 3))]
    lines = [rescale(0.8, 3, ABOVE, count=2), rescale(8.8, 1, "All metrics below target")]
    assert [event.words for event in scale_events(samples, lines)] == [
        "Grows from 1 to 3 workers: CPU use is above its target.",
        "Shrinks from 3 to 1 worker: everything that is measured is below its target.",
        "Grows from 1 to 3 workers: CPU use is above its target.",
    ]


points = st.lists(
    st.builds(
        lambda second, ready, wanted: SamplePoint(MOMENT + timedelta(seconds=second), ready, wanted, None, None, None),
        st.integers(0, 10**6), st.integers(0, 50), st.integers(0, 50),
    ),
    max_size=200, unique_by=lambda point: point.at,
).map(lambda kept: sorted(kept, key=lambda point: point.at))  # fmt: skip


@given(points, st.integers(6, 60))
def test_thinning_keeps_ends_peak_and_dip_in_order(samples: list[SamplePoint], limit: int) -> None:
    kept = thinned(samples, limit)
    assert len(kept) <= limit
    assert kept == sorted(set(kept), key=lambda point: point.at)
    assert set(kept) <= set(samples)
    if samples:
        assert (kept[0], kept[-1]) == (samples[0], samples[-1])
        assert max(point.wanted for point in kept) == max(point.wanted for point in samples)
        assert min(point.ready for point in kept) == min(point.ready for point in samples)


def test_cluster_opens_with_its_head_and_without_workers() -> None:
    def why(state: str, *, is_ready: bool) -> str:
        return str(actions(replace(RECORD, state=state), OWNER, is_ready=is_ready).context.why_not_open)  # type: ignore[attr-defined]

    assert why("preparing", is_ready=True) == ""
    assert why("preparing", is_ready=False) == "You can open it as soon as its head is up."
    assert why("queued", is_ready=False) == "You can open it as soon as it runs."


def test_the_heads_restart_is_offered_where_it_is_accepted() -> None:
    for state in State:
        shown = actions(replace(RECORD, state=state.value), OWNER, is_ready=True).context
        assert isinstance(shown, Actions)
        assert shown.shows_restart is (state in RESTARTABLE), state


# --- Its history ---


def test_same_event_of_many_workers_is_a_single_line() -> None:
    pods = [waiting_worker("c", name) for name in "abc"]
    events = [
        decode(builders.event(f"e{place}", about=pod, reason="TriggeredScaleUp", message="1->3", at=minutes(1)), Event)
        for place, pod in enumerate(pods)
    ]
    other = decode(
        builders.event("late", about=pods[0], reason="TriggeredScaleUp", message="1->3", at=minutes(9)), Event
    )
    record = replace(RECORD, lifecycle=(entered("queued"), rescale(0.5, 3, ABOVE)))
    html = [render_fragment(line, now=NOW) for line in timeline(record, [*events, other], [], assigned_node="")]
    assert sum("New node requested" in line for line in html) == 2
    assert sum("3 pods" in line for line in html) == 1
    assert sum("To 3 workers: CPU use is above its target." in line for line in html) == 1
    alone = timeline(replace(record, kind_record=KindRecord()), events, [], assigned_node="")
    assert sum("New node requested" in render_fragment(line, now=NOW) for line in alone) == 3


def happened(name: str, about: RawObject, reason: str, message: str, **fields: Any) -> Event:
    return decode(builders.event(name, about=about, reason=reason, message=message, at=minutes(1), **fields), Event)


def test_common_steps_of_pods_are_one_line_despite_names() -> None:
    pods = [waiting_worker("c", name) for name in "abc"]
    events = [
        happened(f"{reason}{place}", pod, reason, f"{reason} {pod['metadata']['name']}", kind=kind)
        for place, pod in enumerate(pods)
        for reason, kind in (("Scheduled", "Normal"), ("Pulled", "Normal"), ("FailedMount", "Warning"))
    ]
    html = [render_fragment(line, now=NOW) for line in timeline(RECORD, events, [], assigned_node="")]
    for headline in ("Scheduled on a node", "Image pulled"):
        (line,) = [line for line in html if headline in line]
        assert "3 pods" in line
        assert pods[0]["metadata"]["name"] not in line
    assert sum("The files could not be attached" in line for line in html) == 3, "each trouble has its own words"


def test_a_metric_that_cannot_be_read_is_told_once() -> None:
    scaler = {"kind": "HorizontalPodAutoscaler", "metadata": {"name": "cluster-worker", "namespace": "compute-grid"}}
    unread = happened("unread", scaler, "FailedGetResourceMetric", "no metrics returned", kind="Warning")
    echo = happened("echo", scaler, "FailedComputeMetricsReplicas", "invalid metrics: no metrics", kind="Warning")
    html = "".join(render_fragment(line, now=NOW) for line in timeline(RECORD, [unread, echo], [], assigned_node=""))
    assert ("could not be measured" in html, "could not be computed" in html) == (True, False)
    html = "".join(render_fragment(line, now=NOW) for line in timeline(RECORD, [echo], [], assigned_node=""))
    assert "could not be computed" in html


# --- The cards of its problems ---

ROW = EvidenceRow(2, ("n1", "n2"), "full: at most 1 core free, but 2 cores needed", "for_now")


def card(
    who: Who, *, table: tuple[EvidenceRow, ...] = (), is_operator: bool = False, sees_all: bool = False
) -> Trouble:
    diagnosis = Diagnosis(
        "workers_pending", "1 worker: busy.", "wait", who, "Wait.", table=table, link="infrastructure", is_normal=True
    )
    (shown,) = cast("tuple[Trouble]", troubles([diagnosis], is_operator=is_operator, sees_all=sees_all).context)
    return shown


@pytest.mark.parametrize("who", ["you", "admin", "operator"])
def test_card_with_node_table_says_once_who_can_act(who: Who) -> None:
    with_table = card(who, table=(ROW,))
    assert with_table.who == ""
    assert with_table.reasons is not None
    assert with_table.reasons.who
    assert with_table.reasons.is_normal
    assert card(who).reasons is None
    assert card(who).who


@pytest.mark.parametrize("sees_all", [True, False])
def test_only_who_sees_all_is_led_to_the_nodes(sees_all: bool) -> None:
    reasons = card("you", table=(ROW,), sees_all=sees_all).reasons
    assert reasons is not None
    assert bool(reasons.link) is sees_all


def test_the_table_is_on_the_page() -> None:
    diagnosis = Diagnosis("workers_pending", "1 worker: busy.", "wait", "you", "Wait.", table=(ROW,))
    page = render_fragment(troubles([diagnosis], is_operator=False), now=MOMENT)
    assert "n1, n2" in page
    assert "at most 1 core free" in page
