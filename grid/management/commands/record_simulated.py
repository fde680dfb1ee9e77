"""Create database rows for the executions of the embedded cluster's population, so that the list of executions shows them too.

Everything is read from the pods' labels, so it fits any population of the cluster. An execution of one pod is then like any other, and the
controller reconciles it. A simulated on-demand cluster has none of the objects that the controller would create for it, so its row is made
only on demand, for measuring pages without a controller.
"""

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from grid.core.errors import GridError
from grid.core.labels import APP_COMPONENT, APP_NAME, HEAD, KEYS, NODE_POOL, PREFIX, SIMULATED
from grid.dataplanes import api_of
from grid.executions.apply import list_all
from grid.executions.launchsettings import launch_settings
from grid.executions.progress import CREATED
from grid.executions.spec import ClusterSpec, serialize_spec, tier_spec
from grid.kube.objects import Pod, is_ready
from grid.kube.resources import PODS
from grid.models import Environment, Execution, HardwareTier, Membership, Project, State, User
from grid.models.dataplane import LOCAL
from grid.models.environment import Kind

log = logging.getLogger(__name__)

_BATCH = 2000
_COST_OF_A_CORE = 0.05


class Command(BaseCommand):
    help = __doc__.partition("\n")[0]

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--clusters", action="store_true", help="those of clusters too; then the controller must not run"
        )
        parser.add_argument("--every", type=float, default=0.0, help="seconds between two looks for new ones")

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.DEMO:
            raise CommandError("It creates people and executions that do not exist: only with GRID_DEMO=1.")
        every: float = options["every"]
        while True:
            pods, count = [], 0
            try:
                pods = asyncio.run(_pods(with_clusters=options["clusters"]))
                count = record_simulated(pods, with_clusters=options["clusters"], now=timezone.now())
            except GridError as error:
                if not every:
                    raise CommandError(str(error)) from error
            except DatabaseError:
                if not every:
                    raise
                log.exception("the rows could not be written; trying again in %s s", every)
                connection.close()
            if count or not every:
                self.stdout.write(f"{count} executions of {len(pods)} pods are in the database now.")
                self.stdout.flush()
            if not every:
                return
            time.sleep(every)


async def _pods(*, with_clusters: bool) -> list[Pod]:
    selector = SIMULATED if with_clusters else f"{SIMULATED},{KEYS.workload_type}!={Kind.CLUSTER.value}"
    api = api_of(LOCAL)
    try:
        return list(await list_all(api, PODS, Pod, namespace=settings.GRID_NAMESPACE, label_selector=selector))
    finally:
        await api.close()


@transaction.atomic
def record_simulated(pods: Iterable[Pod], *, with_clusters: bool, now: datetime) -> int:
    """Create the missing rows, with the people and things that they name; return the number of executions created."""
    executions: dict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        is_wanted = with_clusters or _label(pod, KEYS.workload_type) != Kind.CLUSTER
        if is_wanted and pod.metadata.deletion_timestamp is None and pod.status.phase not in ("Succeeded", "Failed"):
            executions[_label(pod, KEYS.execution)].append(pod)
    # Ended ones included: the same seed names the same executions at the next start.
    known = Execution.objects.only("pk").in_bulk(list(executions))
    new = [(id, own) for id, own in executions.items() if id not in known]
    mains = {id: min(own, key=lambda pod: (_label(pod, APP_COMPONENT) != HEAD, pod.metadata.name)) for id, own in new}
    _make_things(list(mains.values()))
    _make_people(mains.values())
    users = User.objects.in_bulk({_label(pod, KEYS.user) for pod in mains.values()}, field_name="username")
    projects = Project.objects.in_bulk()
    tiers, environments = HardwareTier.objects.in_bulk(), Environment.objects.in_bulk()
    central = launch_settings()
    rows = []
    for id, pod in mains.items():
        since = pod.metadata.creation_timestamp or now
        row = Execution(
            id=id,
            kind=_label(pod, KEYS.workload_type),
            title=pod.metadata.annotations.get(f"{PREFIX}/title", ""),
            owner=users[_label(pod, KEYS.user)],
            project=projects[_label(pod, KEYS.project)],
            tier=tiers[_label(pod, KEYS.tier)],
            environment=environments[_label(pod, APP_NAME)],
            slots=len(executions[id]),
            requested_at=since,
            slots_reserved_at=since,
            state_since=since,
            node_name=pod.spec.node_name,
        )
        row.state, row.reason = _state(pod)
        if row.state == State.RUNNING:
            row.started_at = since
        if row.kind == Kind.CLUSTER:
            row.head_tier = row.tier
        serialize_spec(row, central=central, cluster=_cluster(row) if row.kind == Kind.CLUSTER else None)
        rows.append(row)
    Execution.objects.bulk_create(rows, batch_size=_BATCH)
    return len(rows)


def _label(pod: Pod, key: str) -> str:
    return pod.metadata.labels[key]


def _title(id: str) -> str:
    return id.replace("-", " ").capitalize()


def _state(pod: Pod) -> tuple[State, str]:
    """Return state and reason as the controller would have recorded them; it continues from there."""
    if not pod.spec.node_name:
        return State.DEPLOYING, CREATED
    return (State.RUNNING, "ready") if is_ready(pod) else (State.PREPARING, "scheduled")


def _cluster(row: Execution) -> ClusterSpec:
    framework, version = row.environment.image.rpartition("/")[2].split(":")
    workers = max(1, row.slots - 1)
    head = tier_spec(row.tier)
    return ClusterSpec(
        framework=framework, version=version, head_tier=head, workers_minimum=min(4, workers), workers_maximum=workers
    )


def _make_people(pods: Iterable[Pod]) -> None:
    """Create the users, with whom nobody can log in. Each project belongs to the first user who launches in it."""
    pairs = dict.fromkeys((_label(pod, KEYS.project), _label(pod, KEYS.user)) for pod in pods)
    names = dict.fromkeys(name for _, name in pairs)
    nobody = make_password(None)
    missing = [User(username=name, password=nobody) for name in names]
    User.objects.bulk_create(missing, batch_size=_BATCH, ignore_conflicts=True)
    users = User.objects.in_bulk(list(names), field_name="username")
    owned = set(Membership.objects.filter(role=Membership.Role.OWNER).values_list("project_id", flat=True))
    memberships = []
    for project, name in pairs:
        role = Membership.Role.CONTRIBUTOR if project in owned else Membership.Role.OWNER
        memberships.append(Membership(project_id=project, user=users[name], role=role))
        owned.add(project)
    Membership.objects.bulk_create(memberships, batch_size=_BATCH, ignore_conflicts=True)


def _make_things(pods: Sequence[Pod]) -> None:
    """Create missing projects, tiers and environments. They are hidden from launches, which would only wait."""
    first_of = {key: {_label(pod, key): pod for pod in reversed(pods)} for key in (KEYS.project, KEYS.tier, APP_NAME)}
    projects = [Project(id=id, name=_title(id)) for id in first_of[KEYS.project]]
    tiers = [_tier(id, pod) for id, pod in first_of[KEYS.tier].items()]
    environments = [
        Environment(
            id=id,
            name=_title(id),
            image=pod.spec.containers[0].image,
            kind=_label(pod, KEYS.workload_type),
            port=8888,
            is_visible=False,
        )
        for id, pod in first_of[APP_NAME].items()
    ]
    Project.objects.bulk_create(projects, batch_size=_BATCH, ignore_conflicts=True)
    HardwareTier.objects.bulk_create(tiers, ignore_conflicts=True)
    Environment.objects.bulk_create(environments, ignore_conflicts=True)


def _tier(id: str, pod: Pod) -> HardwareTier:
    requests = pod.spec.containers[0].resources.requests
    cores = requests["cpu"]
    return HardwareTier(
        id=id,
        name=_title(id),
        node_pool=pod.spec.node_selector[NODE_POOL],
        cores=cores,
        memory=requests["memory"],
        gpus=int(requests.get("nvidia.com/gpu", 0)),
        cost_per_hour=f"{int(cores.removesuffix('m')) / 1000 * _COST_OF_A_CORE:.2f}",
        is_visible=False,
    )
