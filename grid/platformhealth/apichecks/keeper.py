"""Runs the checks of the API that admins have asked for; the leading controller does it, and removes what a stopped one has left."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from grid.core.errors import Conflict, GridError, NotAllowed, Rejected
from grid.core.translation import gettext as _
from grid.database.periodic import PeriodicTask
from grid.database.seam import Database
from grid.executions.context import LaunchTarget
from grid.kube.api import KubeApi
from grid.kube.errors import answer_of
from grid.models import ApiCheckRun
from grid.platformhealth.apicheckresults import ApiCheckResult, NeededRight, summary
from grid.platformhealth.apichecks import apicheckruns
from grid.platformhealth.apichecks.checks import CHECKS
from grid.platformhealth.apichecks.running import CHECK_SECONDS, STRANGE, ApiCheck, missing_rights, run_checks
from grid.platformhealth.apichecks.scratch import Scratch, check_namespaces, make_namespace, remove

logger = logging.getLogger(__name__)

LOOK_SECONDS = 5.0
LONGEST_SECONDS = 600.0  # of a whole run; an API server that hangs would hold up all others
OWN_NAMESPACE_RIGHTS = tuple(NeededRight(verb, "namespaces") for verb in ("create", "get", "delete"))
STOPPED = _("The controller, or its database, stopped while it ran. Run the checks again.")


@dataclass
class ApiCheckKeeper:
    """Takes one request after the other. What is begun when it looks was begun by another, which has stopped."""

    api: KubeApi
    database: Database
    target: LaunchTarget
    clock: Callable[[], datetime]
    monotonic: Callable[[], float]
    checks: Sequence[ApiCheck] = CHECKS
    _has_swept: bool = field(default=False, init=False)

    def periodic(self) -> PeriodicTask:
        data_plane = self.target.data_plane
        return PeriodicTask(
            "API checks", LOOK_SECONDS, self.run_once, work=lambda now: apicheckruns.unfinished(data_plane)
        )

    async def run_once(self) -> None:
        if not self._has_swept:
            await self._sweep()
            self._has_swept = True
        for run in await self.database(apicheckruns.open_runs, self.target.data_plane):
            if run.ended_at is None and run.started_at is None:
                await self._take(run)
            else:
                await self.database(apicheckruns.end, run, self.clock(), STOPPED)
                await self._clean(run)

    async def _take(self, run: ApiCheckRun) -> None:
        database, clock = self.database, self.clock
        if not await database(apicheckruns.begin, run, clock()):
            return
        logger.info("checks of the API begun namespace=%s by=%s", run.namespace, run.asked_by_name)
        try:
            async with asyncio.timeout(LONGEST_SECONDS):
                trouble, needs_shared = await self._check(run)
        except TimeoutError:
            trouble = _("The checks did not end within {minutes:.0f} minutes.", minutes=LONGEST_SECONDS / 60)
            needs_shared = False
        await database(apicheckruns.end, run, clock(), trouble, needs_shared=needs_shared)
        if needs_shared:  # nothing was made
            await database(apicheckruns.note_clean, run)
        else:
            await self._clean(run)

    async def _check(self, run: ApiCheckRun) -> tuple[str, bool]:
        """Run the checks. Return why they did not run, "" if they did, and whether they would in the executions' namespace."""
        scratch = self._scratch(run)
        if not scratch.is_shared:
            # What we may not remove, we do not make.
            if missing := await missing_rights(scratch, OWN_NAMESPACE_RIGHTS, {}):
                return _("The controller may not create and remove namespaces. {missing}", missing=missing), True
            try:
                await make_namespace(scratch)
            except NotAllowed as error:
                return _("The controller may not create namespaces: {answer}", answer=answer_of(error).message), True
            except GridError as error:
                return _("No namespace could be created: {answer}", answer=answer_of(error).message), False
        results: list[ApiCheckResult] = []

        async def tell(result: ApiCheckResult) -> None:
            results.append(result)
            await self.database(apicheckruns.note_results, run, tuple(results))

        await run_checks(scratch, self.checks, monotonic=self.monotonic, tell=tell)
        logger.info("checks of the API ended namespace=%s: %s", run.namespace, summary(results))
        return "", False

    async def _clean(self, run: ApiCheckRun) -> None:
        """Delete what was made. While the cluster does not answer, the next look tries again; what it refuses is told."""
        left = ""
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                await remove(self._scratch(run))
        except (NotAllowed, Rejected, Conflict, *STRANGE) as error:
            left = _("What the checks have made in {namespace} could not be removed: {answer}")
            left = left.format(namespace=run.namespace, answer=answer_of(error).message)
            logger.warning("checks of the API not removed namespace=%s: %s", run.namespace, error)
        await self.database(apicheckruns.note_clean, run, left)

    def _scratch(self, run: ApiCheckRun) -> Scratch:
        return Scratch(self.api, run.namespace, run.token, self.target.namespace)

    async def _sweep(self) -> None:
        """Remove namespaces of checks of which no stored run is open, as after the database was restored."""
        known = {run.namespace for run in await self.database(apicheckruns.open_runs, self.target.data_plane)}
        for name in await check_namespaces(self.api, self.target.namespace):
            if name not in known:
                logger.warning("removing a namespace of forgotten checks namespace=%s", name)
                with contextlib.suppress(NotAllowed, Rejected, Conflict):
                    await remove(Scratch(self.api, name, "", self.target.namespace))
