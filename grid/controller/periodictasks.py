"""What the leader does beside reconciling, each in a task of its own: one that waits or fails holds up no other."""

import asyncio
import random
from collections.abc import Callable

from grid.audit.sealer import AuditSealer
from grid.clusters.framework_poller import FrameworkPoller
from grid.clusters.frameworks.base import FrameworkAdapter
from grid.controller import telling
from grid.controller.firstround import FirstRound
from grid.controller.housekeeping import Housekeeping
from grid.database.trouble import TroubleLog
from grid.environments.packagechecks import package_checks
from grid.environments.revisionbuilds import revision_builds
from grid.executions.context import Context
from grid.executions.dryrun import DryRuns
from grid.executions.policykeeper import PolicyKeeper
from grid.jobs.scheduler import JobScheduler
from grid.logs.logshipping.shipper import LogShipper, PostsLines
from grid.metrics.cpuwindow import PodUsageSource
from grid.nodes.nodekeeper import NodeKeeper
from grid.platformhealth.apichecks.keeper import ApiCheckKeeper
from grid.platformhealth.keeper import PlatformKeeper
from grid.platformhealth.reading import Watched
from grid.queue.waitkeeper import WaitKeeper
from grid.sharing.portsharing import StoredPorts
from grid.tiers.placeholders import PlaceholderKeeper
from grid.usage.peaks import PeakKeeper


class LeaderTasks:
    """The tasks of one term of leadership; `start` them in a group that ends with it."""

    def __init__(
        self,
        context: Context,
        troubles: TroubleLog,
        *,
        rng: random.Random,
        framework_of: Callable[[str], FrameworkAdapter],
    ) -> None:
        self._context = context
        self._troubles = troubles
        self._rng = rng
        self._peaks: PeakKeeper | None = None
        self._platform: PlatformKeeper | None = None
        self._shipper: LogShipper | None = None
        self.framework_poller = FrameworkPoller(context, rng=rng, framework_of=framework_of)
        self.wait_keeper = WaitKeeper(context, troubles)
        self.placeholders = PlaceholderKeeper(context, troubles, rng)
        self.dry_runs = DryRuns(context, rng=rng)

    def measure_with(self, usage: PodUsageSource) -> None:
        """Keep the executions' peak use and average CPU, once started. Without a source none is kept."""
        context = self._context
        source, namespace = context.cpu.around(usage), context.target.namespace
        self._peaks = PeakKeeper(
            source, context.pods, context.due_work, namespace, monotonic=context.monotonic, rng=self._rng
        )

    def look_after(self, platform: Watched) -> None:
        """Look after the platform's health, once started."""
        self._platform = PlatformKeeper(self._context, platform, self._troubles)

    def ship_logs(self, receiver: PostsLines) -> None:
        """Send executions' logs to the receiver, once started. Without one they stay here."""
        self._context.shipping = self._shipper = LogShipper(self._context, receiver, rng=self._rng)

    def start(self, group: asyncio.TaskGroup, first_round: FirstRound, *, period: Callable[[], float]) -> None:
        """Start all of them; `period` is how often the dry runs look for themselves, in seconds."""
        context, troubles, rng = self._context, self._troubles, self._rng
        database, clock, target = context.due_work, context.clock, context.target
        ports = StoredPorts(database, clock)
        loops = [
            self.wait_keeper.run(),
            self.framework_poller.run(),
            Housekeeping(database, clock).run(),
            AuditSealer(database, clock, troubles).run(rng),
            JobScheduler(database, clock, troubles, rng).run(after=first_round.run),
            telling.run(context, troubles, rng, known=first_round.over),
            PolicyKeeper(context.api, target.namespace, target.network, rng=rng, ports=ports).run(),
            revision_builds(context, troubles, rng).run(),
            package_checks(database, clock, troubles).run(),
            NodeKeeper(context.api, database, clock, troubles).run(rng),
            ApiCheckKeeper(context.api, database, target, troubles, clock=clock, monotonic=context.monotonic).run(rng),
            self.placeholders.run(),
            self.dry_runs.run(period),
        ]
        if self._peaks is not None:
            loops.append(self._peaks.run())
        if self._platform is not None:
            loops.append(self._platform.run(rng))
        if self._shipper is not None:
            loops.append(self._shipper.run())
        for loop in loops:
            group.create_task(loop)
