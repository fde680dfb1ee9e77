"""The list of what the leader does again and again; each room declares its own tasks (`grid.database.periodic`). The audit of pods and the
metrics of runs, which look at what `Controller` holds itself, are added there.

Not in it is what is no periodic work, and what `Controller.run` starts beside it: watches, the poll, which the change feed wakes, and what
is woken by the poll or by a request (`RunMover`, `WaitReasonWriter`, `DryRuns`, `PolicyKeeper`, the workers of the queue).
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from django.conf import settings

from grid.alerts.alert_notifier import AlertNotifier
from grid.alerts.silence_sync import Alertmanager, SilenceSynchronizer
from grid.announcements import maintenance
from grid.audit import sealing
from grid.clusters.framework_poller import FrameworkPoller
from grid.clusters.registration import Registration
from grid.controller import housekeeping
from grid.controller.firstround import FirstRound
from grid.database.periodic import PeriodicTask, TaskRecord
from grid.database.trouble import TroubleLog
from grid.environments.packagechecks import PackageChecks
from grid.environments.packageindex import PackageIndex
from grid.environments.revisionbuilds import RevisionBuilds
from grid.executions.context import Context
from grid.jobs.deadlines import DeadlineWatch
from grid.jobs.scheduler import JobScheduler
from grid.logs import knowledge
from grid.logs.logshipping.shipper import LogShipper, PostsLines
from grid.metrics.usage import CpuWindow, PodUsageSource
from grid.nodes.nodekeeper import NodeKeeper
from grid.notifications.sender import Sender
from grid.platformhealth.apichecks.keeper import ApiCheckKeeper
from grid.platformhealth.keeper import PlatformKeeper
from grid.platformhealth.reading import Watched
from grid.queue import queuewatch
from grid.queue.waitkeeper import WaitKeeper
from grid.tiers.placeholders import PlaceholderKeeper
from grid.usage.budgets.keeper import BudgetKeeper
from grid.usage.peaks import PeakKeeper
from grid.workspaces.shutdown.observer import PodObserver
from grid.workspaces.shutdown.records import ShutdownWatch

KNOWLEDGE_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class TermInputs:
    """What a term of leadership is given from outside. A task whose input is None is left out."""

    usage: PodUsageSource | None = None
    platform: Watched | None = None
    log_receiver: PostsLines | None = None
    registration: Registration | None = None


def periodic_tasks(
    context: Context,
    inputs: TermInputs,
    *,
    troubles: TroubleLog,
    rng: random.Random,
    first_round: FirstRound,
    poller: FrameworkPoller,
    shipper: LogShipper | None,
    records: Callable[[], Sequence[TaskRecord]],
) -> list[PeriodicTask]:
    """Return the tasks of one term of leadership. `shipper` is None where logs stay here; `records` says how all of the leader's go."""
    api, database, clock, target = context.api, context.due_work, context.clock, context.target
    cpu = CpuWindow(context.monotonic)
    tasks = [
        poller.periodic(),
        housekeeping.periodic(database, clock),
        sealing.periodic(database, clock),
        maintenance.periodic(database, clock),
        queuewatch.periodic(context),
        JobScheduler(database, clock).periodic(after=first_round.over),
        BudgetKeeper(database, clock).periodic(after=first_round.over),
        DeadlineWatch(context.pods.values, database, clock).periodic(),
        ShutdownWatch(
            target.data_plane, database, clock, PodObserver(context, cpu=cpu, reporting=poller.reporting)
        ).periodic(),
        AlertNotifier(database, clock).periodic(),
        Sender(database, clock, troubles, rng).periodic(),
        RevisionBuilds(context, troubles).periodic(),
        NodeKeeper(api, database, clock).periodic(),
        ApiCheckKeeper(api, database, target, clock=clock, monotonic=context.monotonic).periodic(),
        PlaceholderKeeper(context).periodic(),
        WaitKeeper(context).periodic(),
        PeriodicTask("knowledge base", KNOWLEDGE_SECONDS, partial(database, knowledge.refresh)),
    ]
    if settings.ALERTMANAGER_URL:
        tasks.append(SilenceSynchronizer(Alertmanager(settings.ALERTMANAGER_URL), database, clock).periodic())
    if settings.PACKAGE_ADVISORIES:
        tasks.append(PackageChecks(database, clock, troubles, PackageIndex(settings.PACKAGE_ADVISORIES)).periodic())
    if inputs.usage is not None:
        source = cpu.recording(inputs.usage)
        peaks = PeakKeeper(source, context.pods, database, target.namespace, monotonic=context.monotonic)
        tasks.append(peaks.periodic())
    if inputs.platform is not None:
        tasks.append(PlatformKeeper(context, inputs.platform, records, shipper).periodic())
    if shipper is not None:
        tasks.append(shipper.periodic())
    if inputs.registration is not None:
        tasks.append(inputs.registration.periodic())
    return tasks
