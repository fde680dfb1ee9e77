"""A story drawn at random for a world whose controllers are killed: what is launched, what people do meanwhile, and how time passes."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db.models import F, Q

from grid.clusters.changes import resize, restart_head
from grid.configuration import PREPARING_TIMEOUT, WARM_PLACES, WORKSPACE_IDLE
from grid.core.errors import GridError, Rejected
from grid.environments import revisions
from grid.executions.launchrequest import JobSettings
from grid.executions.request import submit
from grid.executions.stopping import request_stop
from grid.files import stored_remotes as remotes
from grid.jobs import jobs, schedules
from grid.jobs.schedules import ScheduleSettings
from grid.models import (
    ConfigRecord,
    Environment,
    Execution,
    HardwareTier,
    Job,
    Project,
    Schedule,
    State,
    StopPlan,
    Workspace,
)
from grid.models.environment import Kind
from grid.queue.launches import why_not_launch
from grid.sharing import sharing
from grid.workspaces import workspaces
from grid.workspaces.shutdown.records import extend_lifetime
from tests.controller.kill_world import KillWorld, Replicas
from tests.support.shop import OWNER, Shop
from tests.support.virtual import passes
from tests.usage.budgeting import budget

FRAMEWORKS = {"dask": "2026.8.0", "ray": "2.60.0", "spark": "4.3.0"}
WARM = 2
DAILY = {"warm_days": ["mon", "tue", "wed", "thu", "fri", "sat", "sun"], "warm_from": "00:00", "warm_until": "23:59"}


@dataclass(frozen=True)
class Estate:
    """What there is to launch with: projects by where their files are, clusters' environments by framework, and a tier that may go."""

    shop: Shop
    projects: dict[str, Project]
    clusters: dict[str, Environment]
    app: Environment
    old_tier: HardwareTier


def make_estate(shop: Shop) -> Estate:
    owner = shop.people.owner
    git = Project.objects.start(id="in-git", name="In Git", owner=owner)
    far = Project.objects.start(id="far", name="Far", owner=owner)
    url = "https://git.example.com/far.git"
    remotes.put(far, by=owner, url=url, branch="main", username="", secret="t0ken", now=KillWorld().now)
    for project, place in ((git, Project.Files.GIT), (far, Project.Files.REMOTE)):
        project.files = place
        project.save()
    for key, value in ((WORKSPACE_IDLE.key, 45 * 60), (PREPARING_TIMEOUT.key, 1800)):
        ConfigRecord.objects.create(key=key, value=str(value))
    environments = {
        name: Environment.objects.create(
            id=f"{name}-x", name=name, kind="cluster", image=name, frameworks={name: version}
        )
        for name, version in FRAMEWORKS.items()
    }
    app = Environment.objects.create(id="app", name="App", kind="app", image="app:1", port=8080)
    old = HardwareTier.objects.create(
        id="old", name="Old", node_pool="default", cores="1", memory="4Gi", cost_per_hour="2", maximum_simultaneous=4
    )
    return Estate(shop, {"volume": shop.project, "git": git, "remote": far}, environments, app, old)


class Story:
    """One world from its first launch to the last pod's end. `rng` draws everything."""

    def __init__(self, estate: Estate, rng: random.Random) -> None:
        self.estate, self.shop, self.rng = estate, estate.shop, rng
        self.world = KillWorld(rng=rng)
        self.world.cluster.server.registry.native_sidecars = rng.random() < 0.7
        count, leases = rng.choice(((1, False), (1, True), (2, True), (2, False)))
        self.replicas = Replicas(self.world, count, leases=leases)
        self.schedule: Schedule | None = None
        self.is_warm = rng.random() < 0.4
        self.events: list[str] = []  # what happened, for whoever looks for the reason of a failure

    async def live(self, rounds: int) -> None:
        """Launch, and have processes killed, people act and time pass."""
        self._prepare()
        kinds: tuple[Callable[[], object], ...] = (
            *(self.workspace, self.workspace, self.job, self.job, self.sweep, self.follower),
            *(self.scheduled, self.app, self.cluster, self.with_cluster, self.revision),
        )
        for launch in self.rng.sample(kinds, 3):
            self._try(launch)
        for _ in range(rounds):
            if self.rng.random() < 0.4:
                self._try(self.rng.choice(self._acts()))
            await self.round(kill=self.rng.random() < 0.9)

    async def round(self, *, kill: bool = False, all_of_it: bool = False) -> None:
        rng, world = self.rng, self.world
        self.replicas.kill_within = rng.choice((10, 30, 60, 120)) if kill else 0
        try:
            await self.replicas.round(all_of_it=all_of_it)
        except GridError as trouble:
            self.events.append(f"{world.now:%H:%M:%S} {trouble}")
        world.behave()
        seconds = rng.choice((1, 5, 11, 20)) if all_of_it else rng.choice((1, 3, 6, 11, 20, 61, 240, 700))
        world.passes(seconds)
        await passes(seconds)

    async def come_to_rest(self) -> None:
        """Nobody is killed any more, nothing fails, and nobody wants anything else: wait until all that is left runs."""
        world = self.world
        world.is_calm = world.eyes.is_busy = True
        world.cluster.heal()
        for schedule in Schedule.objects.filter(next_at__isnull=False):
            schedules.pause(schedule.pk, by="alice", now=world.now)
        budget(self.shop, None, now=world.now)
        # Or a workspace that nobody stops could keep a run waiting for ever.
        HardwareTier.objects.filter(pk=self.estate.old_tier.pk).update(maximum_simultaneous=None)
        # What was resized to fewer workers gives slots back when they are gone.
        resized = Q(kind=Kind.CLUSTER) & ~Q(slots=F("workers_maximum") + 1)
        runs = Q(state=State.RUNNING, stop_requested_at=None) & ~resized
        await self._until(lambda: not _unsettled().exclude(runs).exists())

    async def end(self) -> None:
        """Stop everything, and wait until all is settled."""
        world = self.world
        ConfigRecord.objects.filter(key=WARM_PLACES.key).delete()
        for workspace in Workspace.objects.all():
            workspaces.cancel_restart(workspace.pk)
        for job in Job.objects.all():
            jobs.stop_runs(job.pk, by="alice", now=world.now)
        for execution in _unsettled():
            request_stop(execution, by="alice", now=world.now)
        await self._until(lambda: not _unsettled().exists())
        await self.round(all_of_it=True)

    async def _until(self, is_so: Callable[[], bool]) -> None:
        for number in range(120):
            await self.round(all_of_it=True)
            if number > 3 and is_so():
                return
        left = [
            (execution.object_name, execution.state, execution.reason, execution.words(OWNER))
            for execution in _unsettled()
        ]
        raise AssertionError(f"does not come to rest: {left}; {self.events}")

    # --- Launches ---

    def _prepare(self) -> None:
        HardwareTier.objects.update(warm_places=None, is_archived=False)
        if self.is_warm:
            ConfigRecord.objects.update_or_create(key=WARM_PLACES.key, defaults={"value": "10"})
            HardwareTier.objects.filter(pk=self.shop.tier.pk).update(warm_places=WARM, **DAILY)
        if self.rng.random() < 0.3:
            budget(self.shop, "1.50", now=self.world.now, at_stop="stop")

    def _launch(self, kind: str, environment: Environment, **changes: Any) -> Execution:
        rng = self.rng
        project = self.estate.projects[rng.choice(tuple(self.estate.projects))]
        tier = HardwareTier.objects.get(pk=rng.choice(("small", "small", "old")))
        given = {"kind": kind, "environment": environment, "project": project, "tier": tier}
        id = "".join(rng.choices("abcdefghijkmnpqrstuvwxyz23456789", k=10))
        request = self.shop.request(owner=self.shop.people.owner, **(given | changes))
        return submit(request, gate=why_not_launch, now=self.world.now, execution_id=id)

    def workspace(self) -> None:
        self._launch("workspace", Environment.objects.get(pk=self.shop.workspace.pk))

    def app(self) -> None:
        self._launch("app", self.estate.app)

    def _cluster_request(self) -> Any:
        name = self.rng.choice(tuple(self.estate.clusters))
        return self.shop.cluster_request(framework=name, environment=self.estate.clusters[name], workers_maximum=3)

    def cluster(self) -> None:
        request = self._cluster_request()
        self._launch("cluster", request.environment, cluster=request, tier=request.tier)

    def with_cluster(self) -> None:
        kind = self.rng.choice(("workspace", "job"))
        self._launch(kind, self.shop.job if kind == "job" else self.shop.workspace, cluster=self._cluster_request())

    def job(self, *, project: Project | None = None, **settings: Any) -> Job:
        given = {"retries": self.rng.choice((0, 1, 2)), "timeout_seconds": self.rng.choice((None, 300, 7200))}
        place = {"project": project} if project else {}
        execution = self._launch("job", self.shop.job, job=JobSettings(**(given | settings)), **place)
        assert execution.run is not None
        return execution.run.job

    def sweep(self) -> None:
        job = self.job(at_once=2)
        jobs.start_sweep(job.pk, [{"x": str(number)} for number in range(3)], by="alice", now=self.world.now)

    def follower(self) -> None:
        project = self.rng.choice(tuple(self.estate.projects.values()))
        first, second = self.job(project=project), self.job(project=project)
        jobs.start(second.pk, by="alice", now=self.world.now, after=first.runs.get())

    def scheduled(self) -> None:
        overlap, missed = self.rng.choice(Schedule.Overlap.values), self.rng.choice(Schedule.Missed.values)
        settings = ScheduleSettings(cron="*/5 * * * *", overlap=overlap, missed=missed)
        self.schedule = schedules.create(self.job(retries=0).pk, settings, now=self.world.now)

    def revision(self) -> None:
        revisions.make_built(self.shop.workspace.pk, 1, "polars==1.9.0", note="", by="ada-admin", now=self.world.now)

    # --- Acts ---

    def _acts(self) -> tuple[Callable[[], object], ...]:
        return (
            *(self._stop, self._stop, self._resume, self._restart, self._cancel_restart, self._clone, self._keep),
            *(self._archive, self._stop_runs, self._again, self._resize, self._new_head, self._share, self._lift),
        )

    def _try(self, act: Callable[[], object]) -> None:
        try:
            act()
            self.events.append(f"{self.world.now:%H:%M:%S} {act.__name__}")
        except Rejected as refused:
            self.events.append(f"{self.world.now:%H:%M:%S} {act.__name__}: {refused}")

    def _one(self, rows: Any) -> Any:
        """One of the rows, drawn; Rejected without any."""
        drawn = list(rows.order_by("pk"))
        if not drawn:
            raise Rejected([])
        return self.rng.choice(drawn)

    def _stop(self) -> None:
        request_stop(self._one(_unsettled()), by="alice", now=self.world.now)

    def _resume(self) -> None:
        workspace = self._one(Workspace.objects.all())
        with_cluster = self.rng.random() < 0.5
        workspaces.resume(
            workspace.pk,
            environment=workspace.environment,
            tier=workspace.tier,
            with_cluster=with_cluster,
            now=self.world.now,
        )

    def _restart(self) -> None:
        workspaces.request_restart(self._one(Workspace.objects.all()).pk, by="alice", now=self.world.now)

    def _cancel_restart(self) -> None:
        workspaces.cancel_restart(self._one(Workspace.objects.all()).pk)

    def _clone(self) -> None:
        workspace = self._one(Workspace.objects.all())
        self._launch(
            "workspace",
            workspace.environment,
            project=workspace.project,
            tier=workspace.tier,
            title=f"{workspace} again",
        )

    def _keep(self) -> None:
        plan = self._one(StopPlan.objects.filter(stops_at__isnull=False, execution__settled_at=None))
        extend_lifetime(plan.execution, stops_at=plan.stops_at, by=self.shop.people.owner, now=self.world.now)

    def _archive(self) -> None:
        self.estate.old_tier.is_archived = True
        self.estate.old_tier.save()

    def _stop_runs(self) -> None:
        jobs.stop_runs(self._one(Job.objects.all()).pk, by="alice", now=self.world.now)

    def _again(self) -> None:
        jobs.start_again(self._one(Job.objects.all()).runs.earliest("number").pk, by="alice", now=self.world.now)

    def _running(self, kind: Kind) -> Any:
        return self._one(_unsettled().filter(kind=kind, state=State.RUNNING))

    def _resize(self) -> None:
        most = self.rng.choice((2, 3, 4))
        resize(self._running(Kind.CLUSTER), minimum=1, maximum=most, by="alice", now=self.world.now)

    def _new_head(self) -> None:
        restart_head(self._running(Kind.CLUSTER), by="alice", now=self.world.now)

    def _share(self) -> None:
        sharing.share(
            self._running(Kind.APP).pk,
            sharing.members_to_share_with(self._running(Kind.APP)),
            by="alice",
            now=self.world.now,
        )

    def _lift(self) -> None:
        budget(self.shop, "500", now=self.world.now)


def _unsettled() -> Any:
    return Execution.objects.unsettled()
