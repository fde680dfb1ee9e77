"""Asks the package index what is known against the packages of built revisions: soon after each is ready, and again every day.

The leading controller does it, one revision after another; no page waits for it. What the index said last is kept while it does not answer.
"""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec
from django.db.models import F, Q

from grid.core.translation import gettext as _
from grid.database.periodic import PeriodicTask
from grid.database.seam import Database
from grid.database.trouble import TroubleLog
from grid.database.turns import PersonTurns, first_of_each
from grid.environments.packageindex import NotChecked, Package, PackageIndex, PackageReport, packages_of
from grid.environments.revisions import CAN_RUN
from grid.models import EnvironmentRevision

logger = logging.getLogger(__name__)

LOOK_SECONDS = 20.0
PAUSE_SECONDS = 2.0  # between two revisions
AWAY_SECONDS = 600.0  # after the index did not answer
AGAIN = timedelta(days=1)
RETRY = timedelta(hours=1)
UNEXPECTED = _("Checking them failed unexpectedly; the controller's log says how.")
NOTHING_KNOWN = _("Neither its log nor its requirements say which releases it has.")


def next_due(now: datetime, turns: PersonTurns[str] | None = None) -> tuple[int, tuple[Package, ...]] | None:
    """Return the built revision that has waited longest for its check, of the person who is next by `turns`, and its packages."""
    due = Q(packages_asked_at=None) | Q(packages_asked_at__lte=now - AGAIN)
    due |= ~Q(packages_unchecked="") & Q(packages_asked_at__lte=now - RETRY)
    built = EnvironmentRevision.objects.filter(due, base__isnull=False, state__in=CAN_RUN)
    oldest = F("packages_asked_at").asc(nulls_first=True)
    waiting = first_of_each(built, "made_by", oldest, "pk", at_most=1)
    served = next((turns or PersonTurns[str]()).each((row.made_by, row) for row in waiting), None)
    if served is None:
        return None
    revision = served[1]
    return revision.pk, tuple(packages_of(revision.requirements.splitlines(), revision.log))


def record_report(revision: int, report: PackageReport) -> None:
    EnvironmentRevision.objects.filter(pk=revision).update(
        packages_report=msgspec.to_builtins(report), packages_asked_at=report.at, packages_unchecked=""
    )


def record_unchecked(revision: int, why: str, now: datetime) -> None:
    """Store why nothing new is known; what the index said before stays."""
    EnvironmentRevision.objects.filter(pk=revision).update(packages_asked_at=now, packages_unchecked=why)


class PackageChecks:
    def __init__(
        self, database: Database, clock: Callable[[], datetime], troubles: TroubleLog, index: PackageIndex
    ) -> None:
        self._database, self._clock = database, clock
        self._troubles, self._index = troubles, index
        self._turns = PersonTurns[str]()

    def periodic(self) -> PeriodicTask:
        return PeriodicTask("package checks", LOOK_SECONDS, self.run_once)

    async def run_once(self) -> float | None:
        now = self._clock()
        due = await self._database(next_due, now, self._turns)
        if due is None:
            return None
        revision, packages = due
        try:
            if not packages:
                await self._database(record_unchecked, revision, NOTHING_KNOWN, now)
                return PAUSE_SECONDS
            report = await self._index.report(packages, now)
            await self._database(record_report, revision, report)
        except NotChecked as why:
            logger.info("packages of a revision not checked reason=%s", why)
            await self._database(record_unchecked, revision, str(why), now)
            return AWAY_SECONDS
        except Exception as error:
            if self._troubles.handles(error):
                raise
            # Noted, or it would stay the one that has waited longest, and no other would ever be checked.
            logger.exception("packages of a revision not checked revision=%s", revision)
            await self._database(record_unchecked, revision, UNEXPECTED, now)
        return PAUSE_SECONDS
