"""Database rows for simulated executions: what the database would know of the pods that the embedded cluster shows.

Everything is read from the pods' labels, so it fits any population of the cluster. An execution of one pod is then like any other, and the
controller reconciles it. A simulated on-demand cluster has none of the objects that the controller would create for it, so its row is made
only on demand, for measuring pages without a controller.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime

from django.contrib.auth.hashers import make_password
from django.db import transaction

from grid.core.labels import APP_COMPONENT, APP_NAME, HEAD, KEYS, NODE_POOL, PREFIX
from grid.executions.launchsettings import launch_settings
from grid.executions.progress import CREATED
from grid.executions.spec import ClusterSpec, serialize_spec, tier_spec
from grid.kube.objects import Pod, is_ready
from grid.models import Environment, Execution, HardwareTier, Membership, Project, State, User
from grid.models.environment import Kind

_BATCH = 2000
_COST_OF_A_CORE = 0.05
_OVER = ("Succeeded", "Failed")


@transaction.atomic
def record_simulated(pods: Iterable[Pod], *, with_clusters: bool, now: datetime) -> int:
    """Create the missing rows, with the people, projects, tiers and environments that they name. Return the number of executions
    created."""
    executions: dict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        is_wanted = with_clusters or pod.metadata.labels[KEYS.workload_type] != Kind.CLUSTER
        if is_wanted and pod.metadata.deletion_timestamp is None and pod.status.phase not in _OVER:
            executions[pod.metadata.labels[KEYS.execution]].append(pod)
    known = _ids_among(list(executions))
    new = {id: _main_first(pods) for id, pods in executions.items() if id not in known}
    mains = [pods[0] for pods in new.values()]
    _make_things(mains)
    _make_people(mains)
    users = {
        user.username: user for user in User.objects.filter(username__in={_label(pod, KEYS.user) for pod in mains})
    }
    projects = Project.objects.in_bulk()
    tiers, environments = HardwareTier.objects.in_bulk(), Environment.objects.in_bulk()
    central = launch_settings()
    rows = []
    for id, pods in new.items():
        pod = pods[0]
        row = Execution(
            id=id,
            kind=_label(pod, KEYS.workload_type),
            title=pod.metadata.annotations.get(f"{PREFIX}/title", ""),
            owner=users[_label(pod, KEYS.user)],
            project=projects[_label(pod, KEYS.project)],
            tier=tiers[_label(pod, KEYS.tier)],
            environment=environments[_label(pod, APP_NAME)],
            slots=len(pods),
            requested_at=pod.metadata.creation_timestamp or now,
            slots_reserved_at=pod.metadata.creation_timestamp or now,
            state_since=pod.metadata.creation_timestamp or now,
            node_name=pod.spec.node_name,
        )
        row.state, row.reason = _state(pod)
        if row.state == State.RUNNING:
            row.started_at = row.requested_at
        if row.kind == Kind.CLUSTER:
            row.head_tier = row.tier
        serialize_spec(row, central=central, cluster=_cluster(row) if row.kind == Kind.CLUSTER else None)
        rows.append(row)
    Execution.objects.bulk_create(rows, batch_size=_BATCH)
    return len(rows)


def _ids_among(ids: Sequence[str]) -> set[str]:
    """Return those ids that have a row, ended ones included: the same seed names the same executions at the next start."""
    known: set[str] = set()
    for first in range(0, len(ids), _BATCH):
        known |= set(Execution.objects.filter(pk__in=ids[first : first + _BATCH]).values_list("pk", flat=True))
    return known


def _main_first(pods: Sequence[Pod]) -> Sequence[Pod]:
    return sorted(pods, key=lambda pod: (_label(pod, APP_COMPONENT) != HEAD, pod.metadata.name))


def _label(pod: Pod, key: str) -> str:
    return pod.metadata.labels[key]


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
    nobody = make_password(None)
    User.objects.bulk_create(
        [User(username=name, password=nobody) for name in dict.fromkeys(name for _, name in pairs)],
        batch_size=_BATCH,
        ignore_conflicts=True,
    )
    users = {user.username: user for user in User.objects.filter(username__in={name for _, name in pairs})}
    owned = set(Membership.objects.filter(role=Membership.Role.OWNER).values_list("project_id", flat=True))
    memberships = []
    for project, name in pairs:
        role = Membership.Role.CONTRIBUTOR if project in owned else Membership.Role.OWNER
        memberships.append(Membership(project_id=project, user=users[name], role=role))
        owned.add(project)
    Membership.objects.bulk_create(memberships, batch_size=_BATCH, ignore_conflicts=True)


def _make_things(pods: Iterable[Pod]) -> None:
    """Create missing projects, tiers and environments. They are hidden from launches, which would only wait."""
    projects, tiers, environments = {}, {}, {}
    for pod in pods:
        project, tier, environment = (_label(pod, key) for key in (KEYS.project, KEYS.tier, APP_NAME))
        if project not in projects:
            projects[project] = Project(id=project, name=project.replace("-", " ").capitalize())
        if tier not in tiers:
            tiers[tier] = _tier(tier, pod)
        if environment not in environments:
            name = environment.replace("-", " ").capitalize()
            image, kind = pod.spec.containers[0].image, _label(pod, KEYS.workload_type)
            environments[environment] = Environment(
                id=environment, name=name, image=image, kind=kind, port=8888, is_visible=False
            )
    Project.objects.bulk_create(projects.values(), batch_size=_BATCH, ignore_conflicts=True)
    HardwareTier.objects.bulk_create(tiers.values(), ignore_conflicts=True)
    Environment.objects.bulk_create(environments.values(), ignore_conflicts=True)


def _tier(id: str, pod: Pod) -> HardwareTier:
    requests = pod.spec.containers[0].resources.requests
    cores = requests["cpu"]
    return HardwareTier(
        id=id,
        name=id.replace("-", " ").capitalize(),
        node_pool=pod.spec.node_selector[NODE_POOL],
        cores=cores,
        memory=requests["memory"],
        gpus=int(requests.get("nvidia.com/gpu", 0)),
        cost_per_hour=f"{int(cores.removesuffix('m')) / 1000 * _COST_OF_A_CORE:.2f}",
        is_visible=False,
    )
