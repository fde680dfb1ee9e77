"""A grid at its extremes on the stage: with nothing in it, with far too much under the worst of names, in all sorts of trouble."""

from datetime import UTC, datetime, timedelta

from asgiref.sync import sync_to_async
from django.db import transaction

from grid.kube.resources import NODES, PODS
from grid.models import Environment, Execution, HardwareTier, LifecycleEntry, Membership, Project, User
from tests.browser import clustering, executing, overviewing
from tests.browser.administering import forget_all
from tests.browser.server import Stage
from tests.support import builders

UNBROKEN = "Quarterlychurnexplorationwithoutanyspaceinitsnamewhatsoever1"
NAMES = (
    UNBROKEN,
    "<script>alert('churn')</script> & <b>friends</b>",
    "استكشاف تراجع العملاء في الربع الأخير",
    "quarterly-churn-exploration-of-all-regions-with-hyphens-only",
    "Everything that anybody has ever wanted to know about why customers leave us, and a little more than fits here, too",
    "🦄🦄🦄 训练流失模型 🦄🦄🦄",
    "x",
)
STATES = ("running", "queued", "deploying", "preparing", "failed", "stopped", "succeeded", "running")
_GUEST = "guest-"


def _clear() -> None:
    forget_all()
    User.objects.filter(username__startswith=_GUEST).delete()


async def nothing(stage: Stage) -> None:
    """No execution, tier, environment, project or node; and nobody of those whom `much` has made."""
    await sync_to_async(_clear)()
    await executing._take_in(stage)


@transaction.atomic
def _catalogue() -> None:
    alice = User.objects.get(username="alice")
    for number in range(60):
        name = f"{_GUEST}{number:02}-{'of-a-department-' * 7 if number % 7 == 0 else 'of-sales'}"
        User.objects.create(username=name, password="!", is_active=number % 5 > 0)
    guests = list(User.objects.filter(username__startswith=_GUEST))
    for number in range(30):
        name, id = NAMES[number % len(NAMES)][:80], f"{'of-a-very-long-id-' * 2 if number % 3 else ''}{number:02}"
        described = (NAMES[4] * 3)[:300]
        HardwareTier.objects.create(
            id=id, name=name, description=described, node_pool="batch" if number % 2 else "a-pool-" * 8, cores="3500m",
            memory="14Gi", cost_per_hour="12345.6789", is_visible=number % 4 > 0, is_archived=number > 26,
        )  # fmt: skip
        project = Project.objects.start(
            id=id, name=name, description=described, owner=alice if number % 2 else guests[0]
        )
        Membership.objects.bulk_create(Membership(project=project, user=each) for each in guests[1 : 1 + number])
        Environment.objects.create(
            id=id, name=name, description=described, image=f"registry.example/{'team/' * 30}lab:1", port=8888
        )


@transaction.atomic
def _executions(count: int) -> list[Execution]:
    now, made = datetime.now(UTC), []
    projects = list(Project.objects.values_list("pk", flat=True))
    for number in range(count):
        state, minutes = STATES[number % len(STATES)], 3.0 + number * 7
        ended = {"ended_at": now - timedelta(minutes=minutes / 2)} if state in STATES[4:7] else {}
        made.append(
            executing._make(
                f"much{number:06}",
                owner="alice" if number % 3 else "bob",
                state=state,
                minutes=minutes,
                title=NAMES[number % len(NAMES)],
                tier="small" if number % 2 else "00",
                project=projects[number % 30],
                message=NAMES[4] if number % 4 == 0 else "",
                node_name="node-" * 12 if state == "running" else "",
                **ended,
            )
        )
    for place in range(200):
        LifecycleEntry.objects.create(
            execution=made[0], at=now - timedelta(seconds=place), source="kubernetes", event_uid=str(place), reason=UNBROKEN,
            object=f"Pod/{'workspace-' * 12}", message=f"{NAMES[4]} {UNBROKEN * 4}",
        )  # fmt: skip
    return made


async def much(stage: Stage) -> None:
    """Hundreds of executions and nodes, dozens of everything else, under names that nobody has thought of."""
    await sync_to_async(_clear)()
    await sync_to_async(executing._team)()
    await sync_to_async(_catalogue)()
    made = await sync_to_async(_executions)(240)
    await overviewing.many_nodes(stage, "batch", 150)
    for number in range(12):
        await overviewing.many_nodes(stage, f"{'a-pool-' * 8}{number}", 3)
    stage.cluster.put(NODES, builders.node("node-" * 12 + "0", pool="batch", instance_type="x-large-" * 7))
    for each in made:
        if each.state in ("running", "preparing", "deploying"):
            node = "batch-0001" if each.state == "running" else ""
            phase = "Running" if node else "Pending"
            stage.cluster.put(PODS, executing._pod(each.pk, node=node, phase=phase, ready=bool(node)))
    lines = [f"{NAMES[place % len(NAMES)]} {UNBROKEN * (place % 5)}" for place in range(300)]
    stage.cluster.set_log(f"workspace-{made[0].pk}", lines, namespace=builders.NAMESPACE, container="run")
    await executing._take_in(stage)


async def trouble(stage: Stage) -> None:
    """A day's executions in their troubles, a cluster whose head crashes again and again, lost nodes, and no controller any more."""
    await clustering.troubled(stage)
    await sync_to_async(executing._executions_of_a_day)(datetime.now(UTC))
    executing._pods_of_a_day(stage)
    await executing._take_in(stage)
    await overviewing.many_nodes(stage, "batch", 20)
    await overviewing.renew_lease(stage)
    overviewing.let_lease_pass(stage)
