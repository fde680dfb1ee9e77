"""What is known of a launch before it happens, for the card beside the form; from the database in a thread, from the caches on its loop."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal

from django.db.models import Count, F, Sum
from django.utils import timezone

from dashboard.announcements.records import coming_maintenance
from dashboard.executions.forms import LaunchForm
from dashboard.executions.launch_waits import with_waits
from dashboard.executions.viewmodels.fit_card import ClusterKnown, FitCard, FitQuestion, TierChoice, fit_card
from dashboard.executions.viewmodels.launch import Slots, slots
from dashboard.executions.viewmodels.launch_check import TOO_OFTEN, CheckLine, check_line
from dashboard.starts.expected_waits import stands_still
from dashboard.starts.viewmodels.expected_wait import STANDS_STILL, launch_wait
from dashboard.starts.wait_records import expected_wait, how_right
from dashboard.usage.usage_records import left_of_budget
from grid.configuration import MAXIMUM_EXECUTIONS_PER_USER, value_of
from grid.core.labels import SIMULATED
from grid.core.workqueue import in_slices
from grid.diagnosis.launchfit import LaunchPool, PodPlan
from grid.diagnosis.launchplaces import RoomTally
from grid.executions import dryrun
from grid.executions.preview import Preview, pod_plan, with_sidecars
from grid.executions.request import draft
from grid.executions.spec import ExecutionSpec, tier_spec
from grid.models import CheckOutcome, Execution, LaunchCheck, User, WaitPrediction
from grid.queue.gate import refusal
from grid.queue.launches import look_ahead
from grid.runtime import Runtime, get_runtime
from grid.starts.startuphistory import usual_node_start

NODES_AT_ONCE = 250  # some 2 ms of the loop


async def cluster_known(runtime: Runtime) -> ClusterKnown:
    """Return what is known of the cluster for the card. Call it on the event loop."""
    trouble = runtime.freshness().trouble
    return ClusterKnown(await pool_states(runtime), await runtime.limits(), trouble.value if trouble else "")


async def pool_states(runtime: Runtime, *, only: str | None = None) -> dict[str, LaunchPool] | None:
    """Return the states of all pools, or of one; None until the cluster has been read. Call it on the event loop, which gets pauses."""
    if not runtime.freshness().synced:
        return None
    groups, states = runtime.groups.by_pool(), dict[str, LaunchPool]()
    for name in {*runtime.nodes.values_of("pool"), *groups} if only is None else {only}:
        tally = RoomTally(runtime.room)
        async for node in in_slices(runtime.nodes.by("pool", name), NODES_AT_ONCE):
            if SIMULATED not in node.metadata.labels:
                tally.count(node)
        states[name] = tally.state(name, groups.get(name), runtime.templates.get(name))
    return states


def card_of(form: LaunchForm, held: Slots, known: ClusterKnown, running: Mapping[str, int]) -> FitCard | None:
    """Return the card for what a bound form asks; None while something of it is missing. Reads the database."""
    if not form.is_valid():
        return None
    now = timezone.now()
    unit = drafted(form, now=now)
    question = question_of(form, unit, running, now=now)
    if known.pools is None:
        return fit_card(question, known, held)
    starts = {name: usual_node_start(name) for name in {plan.pool for plan in question.pods}}
    pools = {name: replace(pool, start_seconds=starts.get(name)) for name, pool in known.pools.items()}
    known = replace(known, pools=pools)
    answer, runtime = fit_card(question, known, held).fit, get_runtime()
    question = with_waits(question, answer.code, unit, runtime, now)
    if stands_still(runtime):
        question = replace(question, expected=(STANDS_STILL.sentence,), usual_start=None)
    return fit_card(question, known, held)


def slots_of(user: User) -> Slots:
    mine = Execution.objects.filter(owner=user).order_by()
    used, queued = (
        rows.aggregate(sum=Sum("slots", default=0))["sum"] for rows in (mine.holding_slots(), mine.queued())
    )
    return slots(used=used, queued=queued, maximum=value_of(MAXIMUM_EXECUTIONS_PER_USER))


def running_by_tier() -> dict[str, int]:
    """Return how many executions hold slots, by tier; as in the queue, a cluster whose head has another tier counts on both."""
    holding = Execution.objects.holding_slots().order_by()
    heads = holding.exclude(head_tier=None).exclude(head_tier=F("tier"))
    counts = Counter(dict(holding.values_list("tier_id").annotate(Count("pk"))))
    counts.update(dict(heads.values_list("head_tier_id").annotate(Count("pk"))))
    return counts


def drafted(form: LaunchForm, *, now: datetime) -> list[Execution]:
    """Return the rows that the form would store, with the ids that they would have; the form must be valid."""
    return draft(form.request, now=now, execution_id=form.execution_id())


def check_of(form: LaunchForm, known: ClusterKnown, *, is_awaited: bool) -> CheckLine | None:
    """Ask the cluster to confirm the form's launch unless that `is_awaited`, or return its answer; None while the form is not valid."""
    if not form.is_valid():
        return None
    now, id = timezone.now(), form.execution_id()
    if is_awaited:
        check = LaunchCheck.objects.filter(pk=id, user=form.user).first()
    else:
        unit = drafted(form, now=now)
        check = dryrun.ask(id, form.user, unit[0].data_plane_id, Preview.of(unit), now=now)
    if check is None:
        return None if is_awaited else TOO_OFTEN
    is_current = dryrun.is_current(check, now)
    return check_line(
        check.outcome,
        check.message,
        check.evidence,
        answered_at=check.answered_at,
        is_current=is_current,
        never_starts=_why_never(form, known, now) if check.outcome == CheckOutcome.CONFIRMED else "",
    )


def _why_never(form: LaunchForm, known: ClusterKnown, now: datetime) -> str:
    """Return why the card says that no node takes the launch, now or ever; "" when one may."""
    question = question_of(form, drafted(form, now=now), {}, now=now)
    answer = fit_card(question, known, slots_of(form.user)).fit
    return answer.sentence if answer.code in ("never_fits", "no_nodes") else ""


def question_of(
    form: LaunchForm, unit: Sequence[Execution], running: Mapping[str, int], *, now: datetime
) -> FitQuestion:
    """Return the question that a valid form asks, whose launch would store the `unit`. Reads the database."""
    request = form.request
    preview = Preview.of(unit)
    pods = preview.pods()
    prices = [row.head_price_per_hour + row.price_per_hour * (row.workers_minimum or 1) for row in unit]
    outlook = look_ahead(unit, now)
    closed, queue = outlook.closed, outlook.place
    stands_in_line = closed is None and queue is not None and queue.position > 0 and not queue.for_good
    return FitQuestion(
        pods=tuple(pods),
        slots=sum(row.slots for row in unit),
        price=sum(prices, Decimal(0)),
        gpus=request.tier.gpus,
        queue=queue,
        full=refusal(closed).message if closed is not None else "",
        expected=launch_wait(expected_wait(list(unit), now), how_right(WaitPrediction.Stage.QUEUED))
        if stands_in_line
        else (),
        needs=tuple(preview.needs()),
        secrets=tuple(secret.name for secret in preview.specs[0].secrets),
        budget=left_of_budget(request.project.pk, sum(prices, Decimal(0)), now),
        coming=coming_maintenance(now),
        sidecars=preview.sidecars(),
        price_of_sidecars=preview.specs[0].price_beside,
        choices=tuple(_choices(form, pods, running, preview.specs[0])),
    )


def _choices(
    form: LaunchForm, pods: Sequence[PodPlan], running: Mapping[str, int], spec: ExecutionSpec
) -> Iterable[TierChoice]:
    """Yield the other tiers of the form's main choice: of the kind's own section where that has one, else of the execution itself."""
    asked = form.request.tier
    of_section = form.own.main_tiers() if form.own is not None else None
    field, offered = of_section or ("tier", form.tiers)
    at = 0 if of_section is None else len(pods) - 1  # of a cluster's pods the workers are the last
    for tier in offered:
        if tier.pk == asked.pk:
            continue
        plans = list(pods)
        plan = replace(pod_plan(tier_spec(tier)), count=pods[at].count)
        plans[at] = with_sidecars(plan, spec)
        most = tier.maximum_simultaneous
        is_full = most is not None and running.get(tier.pk, 0) >= most
        yield TierChoice(field, tier.pk, tier.name, tuple(plans), tier.gpus, is_full)
