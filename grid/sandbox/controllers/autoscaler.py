"""The node autoscaler: adds a node when an unschedulable pod would fit on one, removes a node that is not needed.

Each round reads the mirrors, decides on a snapshot (`autoscaling`), starts what was decided, and publishes its state as the
real cluster-autoscaler does: events on pods and nodes, taints on nodes that are about to be removed, and the status ConfigMap. The
memory between rounds (since when a node is unneeded, which creation failed) may be lost in a restart: that only delays.
"""

import asyncio
import logging
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from grid.core.errors import GridError, NotFound
from grid.core.labels import DELETION_CANDIDATE_TAINT, TO_BE_DELETED_TAINT
from grid.sandbox.client import (
    CONFIG_MAPS,
    DISRUPTION_BUDGETS,
    NODES,
    PODS,
    STORAGE_CLASSES,
    VOLUME_CLAIMS,
    VOLUMES,
    Api,
    Clock,
    Object,
    condition_of,
    name_of,
    reference_to,
)
from grid.sandbox.controllers.autoscaling.scaledown import NodeVerdict, Removable, plan_scale_down
from grid.sandbox.controllers.autoscaling.scaleup import Increase, ScaleUp, UnschedulablePod, plan_scale_up
from grid.sandbox.controllers.autoscaling.status import (
    NAME,
    NAMESPACE,
    GroupFacts,
    Transitions,
    config_map,
    status_text,
)
from grid.sandbox.controllers.autoscaling.view import AutoscalingView, MachineTimeouts, drop_upcoming
from grid.sandbox.controllers.controller import EmbeddedController
from grid.sandbox.controllers.nodehealth import is_usable
from grid.sandbox.controllers.podresources import pod_requests
from grid.sandbox.controllers.removal import NodeRemoval, mark, unmark
from grid.sandbox.controllers.scheduling import Snapshot
from grid.sandbox.controllers.scheduling.decision import concerns_us
from grid.sandbox.controllers.workoff import sleep_or_wake
from grid.sandbox.pools import Cloud, NodePool

logger = logging.getLogger(__name__)

COMPONENT = "cluster-autoscaler"
_MOST_EMPTY_AT_ONCE = 10
_REPEAT_REFUSAL_SECONDS = 60.0
_AFTER_WAKE_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class AutoscalerSettings:
    """The settings of the node autoscaler; the defaults are those of the real one."""

    scan_seconds: float = 10.0
    unneeded_seconds: float = 600.0
    threshold: float = 0.5
    backoff_seconds: float = 300.0
    # A machine that is not a ready node after this time is no longer expected.
    provision_seconds: float = 900.0
    # A node that was ready before is expected back for this time.
    recovery_seconds: float = 120.0


@dataclass(slots=True)
class _Memory:
    """The state between rounds."""

    unneeded_since: dict[str, datetime] = field(default_factory=dict)
    not_ready_since: dict[str, datetime] = field(default_factory=dict)
    backoff: dict[str, tuple[datetime, str]] = field(default_factory=dict)
    refusals: dict[str, tuple[str, datetime]] = field(default_factory=dict)
    removals: dict[str, asyncio.Task[None]] = field(default_factory=dict)


class ClusterAutoscaler(EmbeddedController):
    """The controller that adds and removes nodes, one round after the other, while `run` runs."""

    component = COMPONENT

    def __init__(
        self,
        client: Api,
        *,
        cloud: Cloud,
        pools: Sequence[NodePool],
        settings: AutoscalerSettings | None = None,
        clock: Clock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self._cloud = cloud
        self._limited_pools = pools
        self._settings = settings or AutoscalerSettings()
        super().__init__(client, clock=clock, rng=rng)

    @property
    def _pools(self) -> tuple[NodePool, ...]:
        """The pools with their limits of now."""
        return tuple(self._limited_pools)

    def _begin(self) -> None:
        self._pods = self._mirrors.of(PODS)
        self._nodes = self._mirrors.of(NODES)
        self._claims = self._mirrors.of(VOLUME_CLAIMS)
        self._others = {item.kind: self._mirrors.of(item) for item in (VOLUMES, STORAGE_CLASSES)}
        self._budgets = self._mirrors.of(DISRUPTION_BUDGETS)
        self._removal = NodeRemoval(self._client, self._cloud, self._events, self._clock)
        self._transitions = Transitions()
        self._memory = _Memory()
        self._wake = asyncio.Event()
        self._pods.subscribe(self._pod_changed)

    async def run(self) -> None:
        """Run rounds until cancelled; a removal that is cut off is called off at the next start."""
        async with self._mirrors.running():
            try:
                await self._call_off_leftovers()
                while True:
                    self._wake.clear()
                    try:
                        await self.run_once()
                    except GridError as error:
                        logger.warning("autoscaling waits for the API server: %s", error)
                    except Exception:
                        logger.exception("a round of autoscaling failed; the next one starts anew")
                    await self._pause()
            finally:
                for task in self._memory.removals.values():
                    task.cancel()
                await asyncio.gather(*self._memory.removals.values(), return_exceptions=True)

    async def run_once(self) -> None:
        """Run one round: scale up, then scale down on what remains, then publish."""
        view = self._look()
        grown = await self._grow_to_minimum(view)
        others = {kind: mirror.values() for kind, mirror in self._others.items()}
        snapshot = view.snapshot(self._pods.values(), self._claims.values(), others)
        pools = view.pool_states(grown, self._memory.backoff)
        plan = plan_scale_up(self._waiting(), snapshot, pools)
        created = await self._scale_up(plan, view)
        await self._refuse(plan, view.now)
        drop_upcoming(snapshot)
        verdicts = self._judge(snapshot, view)
        await self._scale_down(verdicts, view)
        await self._publish(view, grown | created, verdicts)

    # Looking

    def _look(self) -> AutoscalingView:
        now = self._clock.now()
        memory = self._memory
        machines = {pool.name: self._cloud.instances(pool.name) for pool in self._pools}
        nodes = {name_of(node): node for node in self._nodes.values()}
        missing = {
            name for names in machines.values() for name in names if name not in nodes or not is_usable(nodes[name])
        }
        memory.not_ready_since = {name: memory.not_ready_since.get(name, now) for name in missing}
        memory.backoff = {pool: entry for pool, entry in memory.backoff.items() if entry[0] > now}
        patience = MachineTimeouts(
            provision=timedelta(seconds=self._settings.provision_seconds),
            recovery=timedelta(seconds=self._settings.recovery_seconds),
        )
        return AutoscalingView(now, self._pools, machines, nodes, memory.not_ready_since, patience)

    def _waiting(self) -> list[UnschedulablePod]:
        """Return the pods that the scheduler could not place, by priority, then oldest first."""
        pods = [pod for pod in self._pods.values() if concerns_us(pod) and _is_unschedulable(pod)]
        # A pod that others make room for needs no new node.
        pods = [pod for pod in pods if not pod["status"].get("nominatedNodeName")]
        pods.sort(key=lambda pod: (-(pod["spec"].get("priority") or 0), pod["metadata"].get("creationTimestamp", "")))
        return [UnschedulablePod(pod, pod_requests(pod)) for pod in pods]

    # Growing

    async def _grow_to_minimum(self, view: AutoscalingView) -> dict[str, int]:
        grown: dict[str, int] = {}
        for pool in self._pools:
            size = len(view.machines[pool.name])
            if size < pool.minimum and pool.name not in self._memory.backoff:
                increase = Increase(pool.name, size, pool.minimum, pool.maximum)
                grown[pool.name] = await self._increase(increase, view.now)
        return grown

    async def _scale_up(self, plan: ScaleUp, view: AutoscalingView) -> dict[str, int]:
        created = {}
        for increase in plan.increases:
            created[increase.pool] = await self._increase(increase, view.now)
        for key, increase in plan.triggered.items():
            pod = self._pods.get(key)
            if pod is not None and created[increase.pool]:
                self._memory.refusals.pop(key, None)
                message = f"pod triggered scale-up: [{{{increase}}}]"
                await self._events.record(_about_pod(pod), "TriggeredScaleUp", message)
        return created

    async def _increase(self, increase: Increase, now: datetime) -> int:
        """Create the machines; return their number. A failure puts the pool into back-off, so that others get a chance."""
        size = f"{increase.after} instead of {increase.before} (max: {increase.maximum})"
        await self._tell("ScaledUpGroup", f"Scale-up: setting group {increase.pool} size to {size}")
        for done in range(increase.after - increase.before):
            try:
                await self._cloud.create(increase.pool)
            except OSError as error:
                until = now + timedelta(seconds=self._settings.backoff_seconds)
                self._memory.backoff[increase.pool] = (until, str(error))
                logger.warning("pool=%s cannot grow: %s", increase.pool, error)
                message = f"Scale-up failed for group {increase.pool}: {error}"
                await self._tell("FailedToScaleUpGroup", message, warning=True)
                return done
        await self._tell("ScaledUpGroup", f"Scale-up: group {increase.pool} size set to {size}")
        return increase.after - increase.before

    async def _refuse(self, plan: ScaleUp, now: datetime) -> None:
        """Record each refusal once, again when the reason changes, and every minute as long as it lasts."""
        memory = self._memory
        memory.refusals = {key: entry for key, entry in memory.refusals.items() if key in plan.refused}
        for key, message in plan.refused.items():
            known = memory.refusals.get(key)
            if known and known[0] == message and (now - known[1]).total_seconds() < _REPEAT_REFUSAL_SECONDS:
                continue
            pod = self._pods.get(key)
            if pod is not None:
                memory.refusals[key] = (message, now)
                await self._events.record(_about_pod(pod), "NotTriggerScaleUp", message)

    # Shrinking

    def _judge(self, snapshot: Snapshot, view: AutoscalingView) -> list[NodeVerdict]:
        """Return a verdict for each node. Nodes under removal count neither as targets for pods nor as nodes of their pool."""
        leaving = set(self._memory.removals)
        for name in leaving:
            snapshot.nodes.pop(name, None)
        spare = {
            pool.name: len([name for name in view.machines[pool.name] if name not in leaving]) - pool.minimum
            for pool in self._pools
        }
        nodes = [
            Removable(name, pool.name) for pool in self._pools for name in view.ready(pool.name) if name not in leaving
        ]
        since = self._memory.unneeded_since
        return plan_scale_down(
            snapshot,
            nodes,
            spare=spare,
            budgets=self._budgets.values(),
            threshold=self._settings.threshold,
            known=sorted(since, key=lambda name: since[name]),
        )

    async def _scale_down(self, verdicts: Sequence[NodeVerdict], view: AutoscalingView) -> None:
        unneeded = {verdict.node: verdict for verdict in verdicts if verdict.unneeded}
        memory = self._memory
        memory.unneeded_since = {name: memory.unneeded_since.get(name, view.now) for name in unneeded}
        await self._mark_candidates(unneeded, view)
        patience = timedelta(seconds=self._settings.unneeded_seconds)
        due = [verdict for name, verdict in unneeded.items() if view.now - memory.unneeded_since[name] >= patience]
        empty = [verdict for verdict in due if not verdict.moving][:_MOST_EMPTY_AT_ONCE]
        # Nodes with pods are removed one at a time: each removal changes where the pods of others fit.
        draining = any(not task.done() for task in memory.removals.values())
        full = [] if empty or draining else [verdict for verdict in due if verdict.moving][:1]
        for verdict in [*empty, *full]:
            task = asyncio.create_task(self._remove(view.nodes[verdict.node], verdict))
            memory.removals[verdict.node] = task

    async def _mark_candidates(self, unneeded: dict[str, NodeVerdict], view: AutoscalingView) -> None:
        for name, node in view.nodes.items():
            marked = _has_taint(node, DELETION_CANDIDATE_TAINT)
            if name in unneeded and not marked:
                stamp = str(int(self._memory.unneeded_since[name].timestamp()))
                await mark(self._client, name, DELETION_CANDIDATE_TAINT, stamp, "PreferNoSchedule")
            elif marked and name not in unneeded and name not in self._memory.removals:
                await unmark(self._client, name, (DELETION_CANDIDATE_TAINT,))

    async def _remove(self, node: Object, verdict: NodeVerdict) -> None:
        try:
            await self._removal.remove(node, verdict)
        except GridError as error:
            logger.warning("node=%s: its removal is interrupted and will be tried again: %s", verdict.node, error)
        except Exception:
            logger.exception("node=%s: its removal failed and will be tried again", verdict.node)
        finally:
            self._memory.removals.pop(verdict.node, None)
            self._memory.unneeded_since.pop(verdict.node, None)
            self._wake.set()

    async def _call_off_leftovers(self) -> None:
        """Call off removals that an earlier process did not finish: the node takes pods again and is judged anew."""
        for node in self._nodes.values():
            if _has_taint(node, TO_BE_DELETED_TAINT):
                await unmark(self._client, name_of(node), (TO_BE_DELETED_TAINT, DELETION_CANDIDATE_TAINT))

    # Telling

    async def _publish(self, view: AutoscalingView, created: dict[str, int], verdicts: Sequence[NodeVerdict]) -> None:
        groups = [self._facts(pool, view, created, verdicts) for pool in self._pools]
        now = self._clock.now()
        body = config_map(status_text(groups, self._transitions, now), now)
        try:
            await self._client.patch(CONFIG_MAPS.path(NAMESPACE, NAME), body)
        except NotFound:
            await self._client.create(CONFIG_MAPS.path(NAMESPACE), body)

    def _facts(
        self, pool: NodePool, view: AutoscalingView, created: dict[str, int], verdicts: Sequence[NodeVerdict]
    ) -> GroupFacts:
        machines = view.machines[pool.name]
        more = created.get(pool.name, 0)
        return GroupFacts(
            name=pool.name,
            minimum=pool.minimum,
            maximum=pool.maximum,
            target=len(machines) + more,
            registered=sum(name in view.nodes for name in machines),
            ready=len(view.ready(pool.name)),
            candidates=sum(item.unneeded and item.pool == pool.name for item in verdicts),
            growing=bool(more or view.booting(pool.name)),
            in_backoff=self._memory.backoff.get(pool.name, (view.now, ""))[1],
        )

    async def _tell(self, reason: str, message: str, *, warning: bool = False) -> None:
        about = {"kind": CONFIG_MAPS.kind, "apiVersion": "v1", "namespace": NAMESPACE, "name": NAME}
        await self._events.record(about, reason, message, type="Warning" if warning else "Normal")

    # Waking

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        """Wake the next round for a pod that was just found unschedulable."""
        if new is not None and _is_unschedulable(new) and not (old is not None and _is_unschedulable(old)):
            self._wake.set()

    async def _pause(self) -> None:
        await sleep_or_wake(self._clock, self._settings.scan_seconds, self._wake)
        # The pods of one launch arrive together; one round for all of them packs better.
        await self._clock.sleep(_AFTER_WAKE_SECONDS)


def _is_unschedulable(pod: Object) -> bool:
    condition = condition_of(pod, "PodScheduled")
    return condition is not None and condition.get("reason") == "Unschedulable"


def _has_taint(node: Object, key: str) -> bool:
    return any(taint.get("key") == key for taint in node.get("spec", {}).get("taints") or ())


def _about_pod(pod: Object) -> Object:
    return reference_to(pod, kind=PODS.kind, api_version=PODS.api_version)
