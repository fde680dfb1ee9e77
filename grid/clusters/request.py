"""A person's request for a cluster: its problems, each at its field, and the frozen spec that it becomes. Reads the central configuration,
the tiers and the environments as they are now; the caller says what nodes there are."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from django.conf import settings

from grid.configuration import MAXIMUM_EXECUTIONS_PER_USER, ClusterPolicy, cluster_policy, value_of
from grid.core.decoding import prepared
from grid.core.errors import Problem, rejection
from grid.core.quantity import format_bytes, millicores, whole
from grid.core.translation import gettext as _
from grid.core.wording import plural
from grid.diagnosis.launchfit import Pools, never_fits
from grid.executions.kinds import kind_of
from grid.executions.launchrequest import ClusterRequest, ClusterSettings, LaunchRequest, wrong_tier
from grid.executions.preview import pod_plan
from grid.executions.spec import ClusterSpec, ScalingSpec, tier_spec
from grid.models import Environment, HardwareTier, User
from grid.models.environment import Framework, Kind

SMALLEST_STORAGE, LARGEST_STORAGE = "1Mi", "64Ti"


def stored_settings(stored: Mapping[str, Any]) -> ClusterSettings:
    """Return the stored request. Raise Rejected when it cannot be read."""
    try:
        return msgspec.convert(stored, prepared(ClusterSettings))
    except msgspec.ValidationError as error:
        sentence = _("The stored settings of its cluster can no longer be read.")
        raise rejection(sentence, "unreadable", path="with_cluster") from error


def read_cluster_settings(stored: Mapping[str, Any]) -> ClusterRequest:
    """Return the request with its rows as they are now. Raise Rejected when one of them no longer exists."""
    known = stored_settings(stored)
    environment = Environment.objects.filter(pk=known.environment).first()
    tiers = HardwareTier.objects.in_bulk([known.head_tier, known.tier])
    head_tier, tier = tiers.get(known.head_tier), tiers.get(known.tier)
    if environment is None or head_tier is None or tier is None:
        gone = _("The environment or a hardware tier of its cluster no longer exists.")
        raise rejection(gone, "not_offered", path="with_cluster")
    rows = {"environment": environment, "head_tier": head_tier, "tier": tier}
    return ClusterRequest(**(msgspec.structs.asdict(known) | rows))


@dataclass(frozen=True, slots=True)
class ClusterCheck:
    """A check of one requested cluster, its owner, and what it is attached to: "workspace", "job" or "" for nothing. `pools` is None
    while the nodes are not known."""

    cluster: ClusterRequest
    owner: User
    attached_to: str
    pools: Pools | None

    def problems(self) -> list[Problem]:
        """Return all problems; an unknown framework is the only one, because the others depend on it."""
        if self.cluster.framework not in Framework.values:
            return [Problem("framework", _("Choose Dask, Ray or Spark."), "framework")]
        policy = cluster_policy(self.cluster.framework)
        return [
            *self._wrong_environment(),
            *self._wrong_machine("head_tier", self.cluster.head_tier),
            *self._wrong_machine("worker_tier", self.cluster.tier),
            *self._wrong_workers(policy),
            *self._wrong_scaling(policy),
            *_wrong_storage(self.cluster.local_storage),
        ]

    def _wrong_environment(self) -> Iterator[Problem]:
        path, label = "cluster_environment", Framework(self.cluster.framework).label
        stored = Environment.objects.filter(pk=self.cluster.environment.pk).first()
        if stored is None or stored.is_archived or not stored.is_visible:
            yield Problem(path, _("This environment is no longer available; choose another."), "not_offered")
        elif stored.kind != Kind.CLUSTER:
            yield Problem(path, _("{name} is not for clusters; choose another environment.", name=stored.name), "kind")
        elif self.cluster.framework not in stored.frameworks:
            has = ", ".join(Framework(name).label for name in stored.frameworks if name in Framework.values)
            sentence = _("{name} does not contain {framework}, only {others}; choose another environment.").format(
                name=stored.name, framework=label, others=has
            )
            yield Problem(path, sentence, "framework")

    def _wrong_machine(self, path: str, tier: HardwareTier) -> Iterator[Problem]:
        stored = HardwareTier.objects.filter(pk=tier.pk).first()
        problem = wrong_tier(self.owner, stored, Kind.CLUSTER, self.cluster.framework, path=path)
        if problem is not None:
            yield problem
            return
        if stored is None:
            return
        if not _asks_for_something(stored):
            sentence = _(
                "{name} requests no cores or no memory, so a worker's load could not be measured. "
                "Choose another tier, or tell your admin."
            ).format(name=stored.name)
            yield Problem(path, sentence, "requests")
        elif self.pools is not None and (unfit := never_fits(pod_plan(tier_spec(stored)), self.pools)):
            yield Problem(path, f"{unfit.sentence} {unfit.next_step}", "too_large")

    def _wrong_workers(self, policy: ClusterPolicy) -> Iterator[Problem]:
        cluster = self.cluster
        yield from wrong_counts(cluster.workers_minimum, cluster.most_workers)
        path = "workers_maximum" if cluster.autoscale else "workers_minimum"
        if cluster.most_workers > policy.maximum_workers:
            yield beyond_limit(path, policy)
        yield from beyond_slots(path, cluster.slots, value_of(MAXIMUM_EXECUTIONS_PER_USER), self.attached_to)

    def _wrong_scaling(self, policy: ClusterPolicy) -> Iterator[Problem]:
        cluster = self.cluster
        if not cluster.autoscale:
            return
        if not policy.autoscaling:
            sentence = _(
                "Autoscaling of {framework} clusters is switched off by your admin; ask for a fixed number of workers."
            )
            yield Problem("autoscale", sentence.format(framework=Framework(cluster.framework).label), "off")
            return
        for path, target in (("target_cpu", cluster.target_cpu), ("target_memory", cluster.target_memory)):
            if target and not 1 <= target <= 100:
                yield Problem(path, _("Give a target of 1 to 100 percent, or leave it out."), "range")
            elif target and not policy.minimum_target <= target <= policy.maximum_target:
                sentence = _("Your admin allows targets of {minimum} to {maximum} percent.")
                sentence = sentence.format(minimum=policy.minimum_target, maximum=policy.maximum_target)
                yield Problem(path, sentence, "bounds")
        if cluster.on_demand and not settings.DEMAND_IS_SERVED:
            # An autoscaler that lacks one of its metrics never scales down, so the request is refused.
            yield Problem("on_demand", _("Growing for waiting tasks is not set up here; ask your admin."), "not_served")
        if not (cluster.target_cpu or cluster.target_memory or cluster.on_demand):
            sentence = _(
                "Choose what the cluster scales by: a CPU target, a memory target or waiting tasks. Or switch autoscaling off."
            )
            yield Problem("target_cpu", sentence, "required")


def validate_cluster(request: LaunchRequest, *, pools: Pools | None) -> list[Problem]:
    cluster = request.cluster
    if cluster is None:
        missing = Problem("framework", _("Say what the cluster runs: Dask, Ray or Spark."), "required")
        return [missing] if request.kind == Kind.CLUSTER else []
    if request.kind == Kind.CLUSTER:
        return [*ClusterCheck(cluster, request.owner, "", pools).problems(), *_apart(request, cluster)]
    if not kind_of(request.kind).takes_cluster:
        return [Problem("with_cluster", _("Only a workspace or a job can have a cluster of its own."), "kind")]
    alone = ClusterCheck(cluster, request.owner, request.kind, pools).problems()
    return [*alone, *_too_many_places(request, cluster), *_apart(request, cluster)]


def _too_many_places(request: LaunchRequest, cluster: ClusterRequest) -> Iterator[Problem]:
    """Yield a problem when a workspace or job and its cluster share a tier that never runs two executions at once."""
    for path, tier in (("head_tier", cluster.head_tier), ("worker_tier", cluster.tier)):
        only_one = HardwareTier.objects.filter(pk=tier.pk, maximum_simultaneous=1).first()
        if only_one is not None and tier.pk == request.tier.pk:
            sentence = _(
                "The {kind} and its cluster would both take a place on {name}, which runs at most 1 execution "
                "at once. Choose another tier for one of them."
            ).format(kind=Kind(request.kind).label.lower(), name=only_one.name)
            yield Problem(path, sentence, "places")


def _apart(request: LaunchRequest, cluster: ClusterRequest) -> Iterator[Problem]:
    """Yield a problem when the pods of a cluster, or of its workspace or job, could not reach each other."""
    asked = {"head_tier": cluster.head_tier.pk, "worker_tier": cluster.tier.pk}
    companion = cluster.head_tier.pk if request.kind == Kind.CLUSTER else request.tier.pk
    stored = HardwareTier.objects.select_related("data_plane").in_bulk({companion, *asked.values()})
    for path, pk in asked.items():
        tier, other = stored.get(pk), stored.get(companion)
        if tier is not None and other is not None and tier.data_plane != other.data_plane:
            sentence = _(
                "{name} is in the data plane “{plane}” and {other} in “{other_plane}”, and pods cannot reach "
                "each other from one to the other. Choose tiers of one data plane."
            ).format(name=tier.name, plane=tier.data_plane, other=other.name, other_plane=other.data_plane)
            yield Problem(path, sentence, "data_plane")


def wrong_counts(minimum: int, maximum: int) -> Iterator[Problem]:
    if minimum < 1:
        yield Problem("workers_minimum", _("A cluster has at least one worker."), "too_few")
    if maximum < minimum:
        sentence = _("The maximum is less than the minimum of {minimum}; enter {least} or more.")
        sentence = sentence.format(minimum=minimum, least=max(minimum, 1))
        yield Problem("workers_maximum", sentence, "below_minimum")


def beyond_limit(path: str, policy: ClusterPolicy) -> Problem:
    workers = plural(policy.maximum_workers, "worker", "workers")
    sentence = _("Your admin allows at most {workers} in one cluster; choose fewer.", workers=workers)
    return Problem(path, sentence, "limit")


def beyond_slots(path: str, slots: int, limit: int, attached_to: str) -> Iterator[Problem]:
    """Yield a problem when a cluster, with what it is attached to, can never start. A limit of 0 is no size: it disables launches for
    now."""
    own = 1 if attached_to else 0
    if not slots + own > limit > 0:
        return
    sentence = _("This takes {slots} slots (the head and each worker take one), and one user may hold {limit}.")
    if attached_to:
        sentence = _(
            "This takes {slots} slots (the head, the {attached_to} and each worker take one), and one user may hold {limit}."
        )
    sentence = sentence.format(
        slots=slots + own, attached_to=Kind(attached_to or Kind.CLUSTER).label.lower(), limit=limit
    )
    most = workers_within(limit, is_attached=bool(attached_to))
    if most < 1:
        step = _("Ask your admin for more slots.")
    else:
        step = _("Choose at most {workers}, or ask your admin.", workers=plural(most, "worker", "workers"))
    yield Problem(path, f"{sentence} {step}", "slots")


def workers_within(limit: int, *, is_attached: bool) -> int:
    """Return the workers of the largest cluster within the limit: its head takes a slot, and so does what it is attached to."""
    return max(0, limit - (2 if is_attached else 1))


def cluster_spec(request: ClusterRequest, *, attached_to: str) -> ClusterSpec:
    """Return the spec that is frozen at launch, from the rows as they are in the launch's own transaction, not the form's older ones."""
    policy = cluster_policy(request.framework)
    return ClusterSpec(
        framework=request.framework,
        version=str(Environment.objects.get(pk=request.environment.pk).frameworks[request.framework]),
        head_tier=tier_spec(HardwareTier.objects.get(pk=request.head_tier.pk)),
        workers_minimum=request.workers_minimum,
        workers_maximum=request.most_workers,
        scaling=msgspec.structs.replace(
            msgspec.convert(policy, prepared(ScalingSpec), from_attributes=True),
            autoscale=request.autoscale,
            target_cpu=request.target_cpu if request.autoscale else 0,
            target_memory=request.target_memory if request.autoscale else 0,
            on_demand=request.autoscale and request.on_demand,
        ),
        local_storage=request.local_storage.strip(),
        drain_seconds=policy.drain_seconds,
        attached_to=attached_to,
    )


def _wrong_storage(text: str) -> Iterator[Problem]:
    path = "local_storage"
    if not text.strip():
        return
    try:
        size = whole(text)
    except ValueError as error:
        yield Problem(path, f"{error}.", "quantity")
        return
    if size <= 0:
        yield Problem(path, _("Give more than zero, such as 20Gi, or leave it empty for none."), "positive")
    elif size < whole(SMALLEST_STORAGE):
        sentence = _("{text} is {size}; write the unit as well, such as 20Gi.")
        yield Problem(path, sentence.format(text=text.strip(), size=format_bytes(size)), "too_small")
    elif size > whole(LARGEST_STORAGE):
        sentence = _("At most {most} for each worker; large data belongs in the project's files.")
        yield Problem(path, sentence.format(most=format_bytes(whole(LARGEST_STORAGE))), "too_large")


def _asks_for_something(tier: HardwareTier) -> bool:
    try:
        return millicores(tier.cores) > 0 and whole(tier.memory) > 0
    except ValueError:
        return False
