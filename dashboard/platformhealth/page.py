"""The platform's health, live, for operators, auditors and admins."""

from collections.abc import Collection, Hashable, Sequence
from datetime import datetime

from django.db import DatabaseError
from django.http import QueryDict
from django.utils import timezone

from dashboard.platformhealth.records import StoredHealth, database_problems, framework_lines, read_health
from dashboard.platformhealth.viewmodels.platform_health import (
    Health,
    HealthPart,
    all_parts,
    caches_part,
    cluster_part,
    controller_part,
    database_part,
    headline,
)
from dashboard.platformhealth.viewmodels.platform_page import (
    WorkloadsView,
    light_parts,
    platform_fragments,
    task_lines,
    workload_lines,
)
from dashboard.shell.access import Viewer, may_observe
from dashboard.shell.pages.page import LivePage
from dashboard.shell.viewmodels.live import Fragment
from grid.core.translation import gettext as _
from grid.database import threads as database
from grid.database.periodic import TaskRecord
from grid.kube.hub import Topic
from grid.models.dataplane import LOCAL
from grid.platformhealth.taskhealth import light
from grid.runtime import Runtime


class PlatformHealthPage(LivePage[None, Sequence[Fragment]]):
    name = "platform-health"
    refusal = _("Only operators, auditors and admins can see the platform's health.")
    rest_seconds = 1.0
    tick_seconds = 10.0  # the controller looks twice a minute, and nothing else tells of it

    def view(self, query: QueryDict) -> None:
        return None

    def allowed(self, runtime: Runtime, viewer: Viewer, view: None) -> bool:
        return may_observe(viewer)

    def audience(self, viewer: Viewer) -> Hashable:
        return "observers"

    async def read(self, runtime: Runtime, viewer: Viewer, view: None) -> Sequence[Fragment]:
        """Return what this process sees itself, and what the controller has stored of the cluster."""
        cluster, controller = cluster_part(runtime.freshness(), timezone.now()), runtime.controller_state()
        own = (cluster, controller_part(*controller), caches_part(runtime.caches()))
        return await database.pages.run(_read, own, runtime.periodic.records, timezone.now())

    def topics(self, runtime: Runtime, viewer: Viewer, view: None, facts: Sequence[Fragment]) -> Collection[Topic]:
        return ()

    def fragments(
        self, runtime: Runtime, viewer: Viewer, view: None, facts: Sequence[Fragment], now: datetime
    ) -> Sequence[Fragment]:
        return facts


PLATFORM_HEALTH = PlatformHealthPage()


def _read(own: tuple[HealthPart, ...], own_tasks: Sequence[TaskRecord], now: datetime) -> Sequence[Fragment]:
    problems = database_problems()
    try:
        stored, frameworks = read_health(LOCAL, now), framework_lines(now)
    except DatabaseError:
        stored, frameworks = StoredHealth(), ()
    seen_here = (*own, database_part(problems, None), *light_parts([light(own_tasks, now)], now, now))
    parts = all_parts(seen_here, light_parts(stored.lights, stored.checked_at, now))
    workloads = WorkloadsView(workload_lines(stored.workloads, now), stored.troubles, stored.checked_at)
    versions = (*stored.versions, *frameworks)
    tasks = (*task_lines(stored.tasks, stored.checked_at or now), *task_lines(own_tasks, now))
    return platform_fragments(Health(headline(parts), parts), stored.incidents, workloads, versions, tasks)
