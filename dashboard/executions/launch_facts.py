"""What is known of a launch before it happens: the last launches, and for the card beside the form room, images and waits.

From the database in a thread, from the caches on their loop.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from itertools import chain
from math import inf
from typing import Any

from asgiref.sync import async_to_sync
from django.db.models import Q, Sum
from django.utils import timezone

from dashboard.announcements.records import coming_maintenance
from dashboard.executions.forms import LaunchForm, new_token
from dashboard.executions.viewmodels import launch
from dashboard.shell.viewmodels.format import cores_words, memory_words
from dashboard.starts.expected_waits import expected_wait, how_right, stands_still
from dashboard.starts.viewmodels.expected_wait import STANDS_STILL, brief_wait, launch_wait
from dashboard.usage.usage_records import left_of_budget
from dashboard.usage.viewmodels.usage import price_words
from grid.configuration import MAXIMUM_EXECUTIONS_PER_USER, value_of
from grid.core.labels import SIMULATED
from grid.core.wording import plural
from grid.core.workqueue import in_slices
from grid.diagnosis.launchfit import FitCode, LaunchPool, PodPlan, Pools
from grid.diagnosis.launchplaces import RoomTally
from grid.diagnosis.nodeimages import ImagePull, image_on, reports_all
from grid.diagnosis.places import takes_pods, untolerated
from grid.diagnosis.resources import resource_amounts
from grid.executions import dryrun
from grid.executions.preview import Preview, pod_plan, with_sidecars
from grid.executions.request import draft
from grid.executions.spec import ExecutionSpec, parse_spec, tier_spec
from grid.kube.objects import Node
from grid.models import CheckOutcome, Environment, Execution, HardwareTier, LaunchCheck, State, User, WaitPrediction
from grid.models.execution import HOLDS_SLOTS
from grid.queue.gate import refusal
from grid.queue.launches import look_ahead
from grid.queue.snapshot import Holdings, held_slots
from grid.queue.wait_estimate import observing
from grid.queue.wait_estimate.capacity import RoomFacts, RoomSeeker, fits
from grid.queue.wait_estimate.observing import Observed
from grid.runtime import Runtime, get_runtime
from grid.runtime.starts import room_beside, waiting_for_room
from grid.starts.startuphistory import RecentStart, image_size, recent_starts, usual_node_start, usual_pace, usual_start

_STARTS: frozenset[FitCode] = frozenset({"starts_now", "needs_nodes", "waits_for_room"})
# Some 2 ms of the loop: of nodes that are only counted, and of those whose images are looked for.
NODES_AT_ONCE, _SEARCHED_AT_ONCE = 250, 100
POOLS_SECONDS = 1.0
LOOKED_AT = 300  # of the latest launches: an index has them in order, so the rest of the history costs nothing


@dataclass(frozen=True, slots=True)
class LastLaunches:
    """The latest launches of a person, the newest first: kind, project, environment and tier of each."""

    rows: tuple[tuple[str, str, str, str], ...]

    def first_choices(self, kind: str) -> dict[str, Any]:
        """Return the initial values of a new form of that kind."""
        initial: dict[str, Any] = {"token": new_token(), "project": self.rows[0][1] if self.rows else None}
        alike = next((row for row in self.rows if row[0] == kind), None)
        return initial | ({"environment": alike[2], "tier": alike[3]} if alike else {})

    def in_order(self, environments: Iterable[Environment], chosen: str) -> list[Environment]:
        """Return the environments: the chosen one, those used last, then the rest, of which those without a framework come first."""
        used = list(dict.fromkeys(row[2] for row in self.rows))
        ranks = {id: rank for rank, id in enumerate(used)}
        return sorted(
            environments, key=lambda row: (row.pk != chosen, ranks.get(row.pk, len(used)), bool(row.frameworks))
        )


def last_launches(user: User) -> LastLaunches:
    rows = Execution.objects.filter(owner=user).order_by("-requested_at")
    return LastLaunches(tuple(rows.values_list("kind", "project_id", "environment_id", "tier_id")[:LOOKED_AT]))


def with_waits(
    question: launch.FitQuestion,
    code: FitCode,
    unit: Sequence[Execution],
    runtime: Runtime,
    now: datetime,
    of_pool: Sequence[RecentStart],
) -> launch.FitQuestion:
    """Return the question with what is known of the start of a launch for which the answer is `code`, from the recent starts of the pool
    of its first pod. Call it in a thread."""
    if code not in _STARTS:
        return question
    first, plan = unit[0], question.pods[0]
    of_choice = recent_starts(tier=first.head_tier_id or first.tier_id, environment=first.environment_id)
    image = parse_spec(first).environment.image
    is_missing, seen_size = async_to_sync(_image)(runtime, plan, image, has_room=code == "starts_now")
    size = seen_size or image_size(of_choice, image)
    pace = usual_pace(of_pool) if size else None
    seconds = size * pace if size and pace is not None else None
    pull = seconds if is_missing and code == "starts_now" else None
    expected, brief = question.expected, question.wait
    if code == "waits_for_room":
        room = async_to_sync(_room)(runtime, question.pods, first.pk, now)
        wait = expected_wait(list(unit), now, runtime, observed=Observed(room=room))
        expected, brief = launch_wait(wait, how_right(WaitPrediction.Stage.ROOM)), brief_wait(wait)
    return replace(
        question,
        expected=expected,
        wait=brief,
        usual_start=usual_start(of_choice, pull=pull),
        pull=ImagePull(size, seconds, is_missing=is_missing),
    )


async def _image(runtime: Runtime, plan: PodPlan, image: str, *, has_room: bool) -> tuple[bool, int | None]:
    """Return whether all nodes on which the pod may start, with room for it now or not, lack its image, and how large that is."""
    size, may_start_on, is_there = None, list[Node](), False
    async for node in in_slices(runtime.nodes.by("pool", plan.pool)[: observing.MOST_NODES], _SEARCHED_AT_ONCE):
        reported = image_on(node, image)
        size = size or (reported.size_bytes if reported is not None else None)
        if _may_take(runtime, node, plan, has_room=has_room):
            is_there = is_there or reported is not None
            may_start_on.append(node)
    return bool(may_start_on) and not is_there and all(reports_all(node, size) for node in may_start_on), size


async def _room(runtime: Runtime, plans: Sequence[PodPlan], execution: str, now: datetime) -> RoomFacts:
    seekers = await waiting_for_room(runtime, now)
    for number, plan in enumerate(plans):
        sliced = in_slices(runtime.nodes.by("pool", plan.pool)[: observing.MOST_NODES], _SEARCHED_AT_ONCE)
        takers = [node.metadata.name async for node in sliced if _may_take(runtime, node, plan, has_room=False)]
        names = frozenset(takers)
        for each in range(min(plan.count, observing.MOST_SEEKERS)):
            seekers.append(RoomSeeker(execution, plan.requests, names, (0, inf, f"{number} {each}"), f"{number}"))
    return await room_beside(runtime, seekers, now)


def _may_take(runtime: Runtime, node: Node, plan: PodPlan, *, has_room: bool) -> bool:
    if SIMULATED in node.metadata.labels or not takes_pods(node) or untolerated(node.spec.taints, plan.tolerations):
        return False
    taken = (runtime.room.requested if has_room else runtime.room.own)(node.metadata.name)
    size = resource_amounts(node.status.allocatable)
    return fits(plan.requests, {resource: amount - taken.get(resource, 0) for resource, amount in size.items()})


async def cluster_known(runtime: Runtime) -> launch.ClusterKnown:
    """Return what is known of the cluster for the card. Call it on the event loop."""
    trouble = runtime.freshness().trouble
    pools = await _POOLS.states(runtime)
    return launch.ClusterKnown(pools, await runtime.limits(), trouble.value if trouble else "")


class SharedPools:
    """The states of all pools as they were at most `POOLS_SECONDS` ago: many launch at once, and each node is counted for them."""

    _of: object = None  # a runtime and its loop
    _count: asyncio.Future[dict[str, LaunchPool] | None]
    _began: float

    async def states(self, runtime: Runtime) -> Pools | None:
        loop = asyncio.get_running_loop()
        if self._of != (runtime, loop) or (self._count.done() and loop.time() - self._began > POOLS_SECONDS):
            self._of, self._began, self._count = (runtime, loop), loop.time(), loop.create_task(pool_states(runtime))
        return await asyncio.shield(self._count)


_POOLS = SharedPools()


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


def card_of(
    form: LaunchForm, held: launch.Slots, known: launch.ClusterKnown, holding: Holdings
) -> launch.FitCard | None:
    """Return the card for what a bound form asks; None while something of it is missing. Reads the database, but for what is `holding`
    slots in each data plane."""
    if not form.is_valid():
        return None
    now = timezone.now()
    unit = drafted(form, now)
    question = question_of(form, unit, holding, now)
    if known.pools is None:
        return launch.fit_card(question, known, held)
    starts = {name: recent_starts(node_pool=name) for name in {plan.pool for plan in question.pods}}
    pools = dict(known.pools)
    for name in starts.keys() & pools.keys():
        pools[name] = replace(pools[name], start_seconds=usual_node_start(starts[name]))
    known, runtime = replace(known, pools=pools), get_runtime()
    code, of_first = launch.fit_card(question, known, held).fit.code, starts[question.pods[0].pool]
    question = with_waits(question, code, unit, runtime, now, of_first)
    if stands_still(runtime):
        question = replace(question, expected=(STANDS_STILL.sentence,), wait="", usual_start=None)
    return launch.fit_card(question, known, held)


def slots_of(user: User) -> launch.Slots:
    mine = Execution.objects.filter(owner=user).unsettled().order_by()
    used, queued = mine.aggregate(
        used=Sum("slots", filter=HOLDS_SLOTS, default=0), queued=Sum("slots", filter=Q(state=State.QUEUED), default=0)
    ).values()
    return launch.slots(used=used, queued=queued, maximum=value_of(MAXIMUM_EXECUTIONS_PER_USER))


@lru_cache(maxsize=2)
def _everybodys(runtime: object, period: float) -> Holdings:
    """Return what the forms that are shown within one period have in common: counting it takes a look at all that runs."""
    return held_slots()


def holding_beside(user: User, runtime: Runtime) -> Holdings:
    """Return what holds slots: of this person as it is now, of all others as at most `POOLS_SECONDS` ago, as the nodes are."""
    everybodys, own = _everybodys(runtime.executions, runtime.monotonic() // POOLS_SECONDS), held_slots(user.pk)
    counted = {plane: own.get(plane, ()) for plane in everybodys.keys() | own.keys()}
    for plane, holding in everybodys.items():
        counted[plane] += tuple([held for held in holding if held.user != user.pk])
    return counted


def running_by_tier(holding: Holdings) -> dict[str, int]:
    """Return how many executions hold slots, by tier; as in the queue, a cluster whose head has another tier counts on both."""
    counts = Counter[str]()
    for held in chain.from_iterable(holding.values()):
        counts[held.tier] += held.executions
    return counts


def tier_cards(
    tiers: Iterable[HardwareTier], *, chosen: str, pools: Pools | None, running: Mapping[str, int] | None = None
) -> list[launch.TierCard]:
    """Return a card for each tier. `pools` is None while the cluster is unknown; what is `running` on each is read when not given."""
    running = running_by_tier(held_slots()) if running is None else running
    return [
        launch.TierCard(
            tier,
            cores=cores_words(tier.cores),
            memory=memory_words(tier.memory),
            gpus=plural(tier.gpus, "GPU", "GPUs") if tier.gpus else "",
            price=price_words(tier.cost_per_hour),
            now=launch.tier_status(
                pod_plan(tier_spec(tier)), pools, tier.maximum_simultaneous, running.get(tier.pk, 0)
            ),
            is_chosen=tier.pk == chosen,
        )
        for tier in tiers
    ]


def drafted(form: LaunchForm, now: datetime) -> list[Execution]:
    """Return the rows that the form would store, with the ids that they would have; the form must be valid."""
    return draft(form.request, now=now, execution_id=form.execution_id(), stored=form.stored)


def check_of(form: LaunchForm, known: launch.ClusterKnown, *, is_awaited: bool) -> launch.CheckLine | None:
    """Ask the cluster to confirm the form's launch unless that `is_awaited`, or return its answer; None while the form is not valid."""
    if not form.is_valid():
        return None
    now, id = timezone.now(), form.execution_id()
    if is_awaited:
        check = LaunchCheck.objects.filter(pk=id, user=form.user).first()
    else:
        unit = drafted(form, now)
        check = dryrun.ask(id, form.user, unit[0].data_plane_id, Preview.of(unit), now=now)
    if check is None:
        return None if is_awaited else launch.TOO_OFTEN
    never_starts = ""  # why the card says that no node takes the launch, now or ever
    if check.outcome == CheckOutcome.CONFIRMED:
        question = question_of(form, drafted(form, now), held_slots(), now)
        answer = launch.fit_card(question, known, slots_of(form.user)).fit
        never_starts = answer.sentence if answer.code in ("never_fits", "no_nodes") else ""
    return launch.check_line(
        check.outcome,
        check.message,
        check.evidence,
        answered_at=check.answered_at,
        is_current=dryrun.is_current(check, now),
        never_starts=never_starts,
    )


def question_of(form: LaunchForm, unit: Sequence[Execution], holding: Holdings, now: datetime) -> launch.FitQuestion:
    """Return the question that a valid form asks, whose launch would store the `unit`. Reads the database."""
    preview, outlook = Preview.of(unit), look_ahead(unit, now, holding=holding)
    pods, spec = preview.pods(), preview.specs[0]
    price = sum((row.head_price_per_hour + row.price_per_hour * (row.workers_minimum or 1) for row in unit), Decimal(0))
    closed, queue = outlook.closed, outlook.place
    expected, brief = tuple[str, ...](), ""
    if closed is None and queue is not None and queue.position > 0 and not queue.for_good:
        wait = expected_wait(list(unit), now, get_runtime(), queue=outlook.queue)
        expected, brief = launch_wait(wait, how_right(WaitPrediction.Stage.QUEUED)), brief_wait(wait)
    return launch.FitQuestion(
        pods=tuple(pods),
        slots=sum(row.slots for row in unit),
        price=price,
        grows=any((row.workers_maximum or 0) > (row.workers_minimum or 0) for row in unit),
        gpus=form.request.tier.gpus,
        queue=queue,
        full=refusal(closed).message if closed is not None else "",
        expected=expected,
        wait=brief,
        needs=tuple(preview.needs()),
        secrets=tuple(secret.name for secret in spec.secrets),
        budget=left_of_budget(form.request.project.pk, price, now),
        coming=coming_maintenance(now),
        sidecars=preview.sidecars(),
        price_of_sidecars=spec.price_beside,
        choices=tuple(_choices(form, pods, running_by_tier(holding), spec)),
    )


def _choices(
    form: LaunchForm, pods: Sequence[PodPlan], running: Mapping[str, int], spec: ExecutionSpec
) -> Iterable[launch.TierChoice]:
    """Yield the other tiers of the form's main choice: of the kind's own section where that has one, else of the execution itself."""
    of_section = form.own.main_tiers() if form.own is not None else None
    field, offered = of_section or ("tier", form.tiers)
    at = 0 if of_section is None else len(pods) - 1  # of a cluster's pods the workers are the last
    for tier in offered:
        if tier.pk == form.request.tier.pk:
            continue
        plans, most = list(pods), tier.maximum_simultaneous
        plans[at] = with_sidecars(replace(pod_plan(tier_spec(tier)), count=pods[at].count), spec)
        is_full = most is not None and running.get(tier.pk, 0) >= most
        yield launch.TierChoice(field, tier.pk, tier.name, tuple(plans), tier.gpus, is_full)
