"""A cluster in words and cells: stored states, the autoscaler's reasons, samples over time, costs."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.clusters.viewmodels.autoscaling import autoscaling, condition_lines
from dashboard.clusters.viewmodels.restart import lost_by_restart
from dashboard.clusters.viewmodels.samples import SamplePoint, cause_in_words, chart, sample_rows, scale_events, thinned
from dashboard.clusters.viewmodels.troubles import troubles
from dashboard.clusters.viewmodels.workers import COMPACT_FROM, WorkerCell, worker_cells
from dashboard.executions.viewmodels.execution import CompanionCard, Person, facts, head
from dashboard.executions.viewmodels.execution_actions import Actions, actions
from dashboard.shell.fragments import render_fragment
from dashboard.shell.viewmodels.listing import EmptyState
from dashboard.shell.viewmodels.live import Fragment
from dashboard.usage.viewmodels.prices import Spending
from grid.clusters.changes import RESTARTABLE
from grid.core.labels import KEYS
from grid.diagnosis.clusters import ClusterSnapshot, explain_cluster, summary
from grid.diagnosis.diagnosis import Diagnosis
from grid.kube.objects import Autoscaler, RawObject
from grid.metrics.usage import Usage
from grid.models import State
from tests.clusters import clustering
from tests.clusters.clustering import autoscaler, head_pod, minutes, sample, waiting_worker, worker_pod
from tests.diagnosis.snapshots import LEAVING, member, pulling, ready, snapshot, starting
from tests.executions import executing
from tests.executions.executing import entered
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
        head(RECORD, Diagnosis("cluster", summary(seen), diagnoses[0].severity if diagnoses else "ok", ""), OWNER),
        actions(RECORD, OWNER, is_ready=seen.head_is_up),
        facts(RECORD, OWNER, pods=[], node="node-a", workers=seen.on_nodes, now=NOW),
        troubles(diagnoses, is_operator=False),
        *cells(seen),
        autoscaling(clustering.RECORD, seen.autoscaler, is_final=False),
    ]
    assert_golden(f"cluster-{name}", "\n".join(render_fragment(fragment, now=NOW) for fragment in whole))


def test_the_other_half_of_a_pair_looks_as_stored() -> None:
    card = CompanionCard("c", "Dask cluster", "Features <b>", "Running", "ok", "2 of 3 workers; 1 waits for a node.")
    fragment = Fragment("companion", "executions/fragments/companion.html", card)
    assert_golden("cluster-companion", render_fragment(fragment, now=NOW))


def cell(seen: ClusterSnapshot, name: str) -> WorkerCell:
    contexts = [fragment.context for fragment in cells(seen) if fragment.id.endswith(f"-{name}")]
    assert isinstance(contexts[0], WorkerCell)
    return contexts[0]


def test_a_cell_says_use_tasks_and_what_it_holds() -> None:
    busy = cell(LOOKS["growing"], "busy")
    assert (busy.letter, busy.cpu, busy.memory, busy.tasks, busy.held) == ("R", 83, 25, "12 tasks", "3 GiB")
    assert (busy.cpu_step, busy.memory_step) == (8, 2)
    assert cell(LOOKS["growing"], "idle").cpu is None, "not measured is not zero"


@pytest.mark.parametrize(
    "written",
    [
        *("", "nonsense", "[]", '{"tasks": "many"}', '{"tasks": 1e99}', "null", '{"tasks": 3, "more": true}'),
        *(f'{{"bytes": {"9" * 400}}}', f'{{"tasks": {"9" * 400}}}', '{"tasks": -3, "bytes": -1}'),
    ],
)
def test_a_report_that_somebody_else_wrote_breaks_nothing(written: str) -> None:
    pod = worker_pod("c", "odd", annotations={KEYS.worker_report: written})
    assert cell(snapshot([member(pod)]), "odd").tasks in ("", "3 tasks")


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


def test_cells_keep_their_place_whatever_their_state() -> None:
    pods = [worker_pod("c", name, created=minutes(place)) for place, name in enumerate("dbca")]
    order = [fragment.id[-1] for fragment in cells(snapshot([member(pod) for pod in reversed(pods)]))]
    assert order == list("dbca")


def test_many_workers_are_small_cells() -> None:
    few, many = cells(snapshot(ready(COMPACT_FROM - 1))), cells(snapshot(ready(COMPACT_FROM)))
    assert "cell-compact" not in render_fragment(few[0], now=NOW)
    assert "cell-compact" in render_fragment(many[0], now=NOW)


@pytest.mark.parametrize(
    ("kind", "status", "reason", "severity", "words"),
    [
        ("AbleToScale", "True", "ReadyForNewScale", "ok", "right for the load"),
        ("AbleToScale", "True", "SucceededRescale", "ok", "has just changed"),
        ("AbleToScale", "True", "ScaleDownStabilized", "wait", "scaling down after the waiting period"),
        ("AbleToScale", "False", "BackoffDownscale", "wait", "It removed workers recently"),
        ("AbleToScale", "False", "FailedGetScale", "problem", "cannot read how many"),
        ("ScalingActive", "True", "ValidMetricFound", "ok", "can measure"),
        ("ScalingActive", "False", "FailedGetResourceMetric", "problem", "cannot measure"),
        ("ScalingActive", "False", "ScalingDisabled", "wait", "no workers"),
        ("ScalingLimited", "False", "DesiredWithinRange", "ok", "between minimum and maximum"),
        ("ScalingLimited", "True", "TooManyReplicas", "wait", "the maximum is reached"),
        ("ScalingLimited", "True", "TooFewReplicas", "ok", "the minimum is reached"),
        ("ScalingLimited", "True", "ScaleUpLimit", "wait", "More workers are needed than may be added at once"),
        ("ScalingLimited", "True", "SomethingNew", "problem", "its own words"),
        ("AbleToScale", "True", "SomethingNew", "ok", "its own words"),
    ],
)
def test_conditions_are_in_words(kind: str, status: str, reason: str, severity: str, words: str) -> None:
    scaler = decode(autoscaler("c", conditions=[condition(kind, status, reason, "its own words")]), Autoscaler)
    (line,) = condition_lines(scaler, maximum=5)
    assert (line.status.severity, line.reason) == (severity, reason)
    assert words in line.status.word


def test_temporary_maximum_of_autoscaler_is_not_called_the_maximum() -> None:
    limited = [condition("ScalingLimited", "True", "TooManyReplicas", "its own words")]
    (line,) = shown(clustering.RECORD, autoscaler("c", maximum=3, conditions=limited)).conditions
    assert line.status.word.endswith("when the ending workers are gone; until then they hold their slots.")


def test_worker_number_is_not_called_right_while_tasks_wait() -> None:
    steady = autoscaler("c", conditions=[condition("AbleToScale", "True", "ReadyForNewScale", "its own words")])
    (waits,) = shown(replace(clustering.RECORD, pending_tasks=18), steady).conditions
    (rests,) = shown(replace(clustering.RECORD, pending_tasks=0), steady).conditions
    assert waits.status.word == "It can change the number of workers; the last measurement asked for no change."
    assert rests.status.word == "The number of workers is right for the load."
    assert waits.reason == rests.reason == "ReadyForNewScale"


def shown(cluster: Any, scaler: RawObject | None) -> Any:
    return autoscaling(cluster, decode(scaler, Autoscaler) if scaler else None, is_final=False).context


def test_the_autoscalers_present_is_one_sentence() -> None:
    assert shown(clustering.RECORD, autoscaler("c", current=3, desired=5)).now == "It grows from 3 to 5 workers."
    assert shown(clustering.RECORD, autoscaler("c", current=5, desired=1)).now == "It shrinks from 5 to 1 worker."
    assert shown(clustering.RECORD, autoscaler("c", current=2, desired=2)).now == "It keeps 2 workers."
    assert shown(clustering.RECORD, autoscaler("c", desired=0)).now == "It has not computed a number yet."


def test_how_the_number_is_chosen_is_said() -> None:
    record = clustering.RECORD
    assert shown(record, None).sentence == (
        "1 to 5 workers, depending on the load. It grows when their average use passes 80 % of the requested CPU or 80 % of the "
        "requested memory."
    )
    demand = replace(record, on_demand=True, target_memory=0, pending_tasks=7)
    assert "passes 80 % of the requested CPU, or when more tasks wait in Dask" in shown(demand, None).sentence
    assert shown(demand, None).demand == "7 tasks wait for a worker."
    assert shown(replace(demand, pending_tasks=0), None).demand == "No task waits for a worker."
    fixed = replace(record, autoscale=False, workers_minimum=3, workers_maximum=3)
    assert shown(fixed, autoscaler("c")).sentence == "3 workers; their number changes only by “Change workers”."
    assert shown(fixed, autoscaler("c")).conditions == ()


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


def test_unsampled_change_is_told_by_history_alone() -> None:
    events = scale_events(
        [sample(0, ready=1, wanted=1), sample(10, ready=1, wanted=1)], [rescale(5, 1, "All metrics below target")]
    )
    assert [event.words for event in events] == ["To 1 worker: everything that is measured is below its target."]


def test_change_by_person_and_its_scaling_are_merged() -> None:
    samples = [sample(0, ready=1, wanted=1), sample(1, ready=1, wanted=2), sample(2, ready=2, wanted=2)]
    lines = [
        entered("", minute=0.8, reason="Resized", message="alice changed it from 1 to 3 workers to 2 to 3 workers."),
        rescale(0.95, 2, "Current number of replicas below Spec.MinReplicas"),
    ]
    (event,) = scale_events(samples, lines)
    assert event.words == "Grows from 1 to 2 workers: alice changed it from 1 to 3 workers to 2 to 3 workers."


def test_change_that_kubernetes_only_counts_gets_its_cause() -> None:
    samples = [sample(minute, ready=1, wanted=wanted) for minute, wanted in ((0, 1), (1, 3), (9, 1), (30, 3))]
    lines = [rescale(0.8, 3, ABOVE, count=2), rescale(8.8, 1, "All metrics below target")]
    assert [event.words for event in scale_events(samples, lines)] == [
        "Grows from 1 to 3 workers: CPU use is above its target.",
        "Shrinks from 3 to 1 worker: everything that is measured is below its target.",
        "Grows from 1 to 3 workers: CPU use is above its target.",
    ]


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("memory resource utilization (percentage of request) above target", "memory use is above its target."),
        ("external metric compute_grid_wanted_workers(nil) above target", "the framework has more tasks waiting"),
        ("Current number of replicas above Spec.MaxReplicas", "there were more than the maximum."),
        ("Current number of replicas below Spec.MinReplicas", "there were fewer than the minimum."),
        ("", ""),
        ("a reason of tomorrow", "a reason of tomorrow."),
    ],
)
def test_kubernetes_reasons_are_in_words(reason: str, words: str) -> None:
    assert cause_in_words(reason).startswith(words)


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


def test_sample_that_is_both_dip_and_peak_is_kept() -> None:
    quiet = [sample(second / 60, ready=2, wanted=2) for second in range(20)]
    quiet[1] = sample(1 / 60, ready=1, wanted=3)
    quiet[2] = sample(2 / 60, ready=0, wanted=2)
    kept = thinned(quiet, 6)
    assert max(point.wanted for point in kept) == 3
    assert min(point.ready for point in kept) == 0


def test_week_of_samples_becomes_readable_chart_and_table() -> None:
    week = [sample(minute / 4, ready=1 + minute // 4000, wanted=1 + minute // 4000) for minute in range(40_000)]
    events = scale_events(week, [])
    drawn = chart(clustering.RECORD, thinned(week), events)
    assert len(drawn["times"]) <= 500
    assert len(drawn["events"]) == 9
    rows = sample_rows(week, events)
    assert len(rows) <= 60
    assert rows[0].at == week[-1].at
    assert sum(bool(row.event) for row in rows) == 9


def test_without_samples_there_is_an_empty_chart_and_table() -> None:
    assert chart(clustering.RECORD, [], [])["times"] == []
    assert sample_rows([], []) == []


@pytest.mark.parametrize("framework", ["dask", "ray", "spark", "tomorrow"])
def test_loss_by_a_restart_is_said_for_each_framework(framework: str) -> None:
    lost = lost_by_restart(framework)
    assert len(lost) > 1
    assert lost[-1].endswith("its history are kept.")


def test_cluster_opens_with_its_head_and_without_workers() -> None:
    def why(state: str, *, is_ready: bool) -> str:
        return str(actions(replace(RECORD, state=state), OWNER, is_ready=is_ready).context.why_not_open)  # type: ignore[attr-defined]

    assert why("preparing", is_ready=True) == ""
    assert why("preparing", is_ready=False) == "You can open it as soon as its head is up."
    assert why("queued", is_ready=False) == "You can open it as soon as it runs."


@pytest.mark.parametrize("state", [state.value for state in State])
def test_the_heads_restart_is_offered_where_it_is_accepted(state: str) -> None:
    shown = actions(replace(RECORD, state=state), OWNER, is_ready=True).context
    assert isinstance(shown, Actions)
    assert shown.shows_restart is (state in RESTARTABLE)
    assert not actions(replace(executing.RECORD, state=state), OWNER, is_ready=True).context.shows_restart  # type: ignore[attr-defined]


@pytest.mark.parametrize("state", ["queued", "deploying"])
def test_buttons_of_a_cluster_without_head_look_as_stored(state: str) -> None:
    early = actions(replace(RECORD, state=state), OWNER, is_ready=False)
    assert_golden(f"cluster-actions-{state}", render_fragment(early, now=NOW))
