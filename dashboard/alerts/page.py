"""Alerts, live: the page for operators, auditors and admins, and the line about critical ones on the open pages of those who operate."""

import asyncio
import random
from collections.abc import AsyncIterator, Collection, Hashable, Sequence
from dataclasses import replace
from datetime import datetime

from django.http import QueryDict
from django.utils import timezone

from dashboard.alerts.records import AlertsRead, critical_alerts, read_alerts
from dashboard.alerts.viewmodel import AlertLine, SilencesView, alert_fragments, critical_fragment
from dashboard.shell.access import Viewer, may_observe, may_operate
from dashboard.shell.pages.page import LivePage
from dashboard.shell.pages.periodic import Board
from dashboard.shell.viewmodels.live import Fragment, PageUpdate
from grid.core.translation import gettext as _
from grid.database import threads as database
from grid.kube.hub import Topic
from grid.runtime import Runtime

LOOK_SECONDS = 10.0
KEPT_SECONDS = 5.0  # what one page has read serves all others meanwhile
SPREAD_SECONDS = 2.0
_LONGEST = 40  # of what names a page of the list; what is longer names none


class AlertsPage(LivePage[str, AlertsRead]):
    """The view is the cursor of a page of what is over, "" for the newest."""

    name = "alerts"
    refusal = _("Only operators, auditors and admins can see alerts.")
    rest_seconds = 1.0
    tick_seconds = 10.0  # nothing else tells of a new one

    def view(self, query: QueryDict) -> str:
        return str(query.get("before", ""))[:_LONGEST]

    def allowed(self, runtime: Runtime, viewer: Viewer, view: str) -> bool:
        return may_observe(viewer)

    def audience(self, viewer: Viewer) -> Hashable:
        return may_operate(viewer)

    async def read(self, runtime: Runtime, viewer: Viewer, view: str) -> AlertsRead:
        return await database.pages.run(read_alerts, view, timezone.now())

    def topics(self, runtime: Runtime, viewer: Viewer, view: str, facts: AlertsRead) -> Collection[Topic]:
        return ()

    def fragments(
        self, runtime: Runtime, viewer: Viewer, view: str, facts: AlertsRead, now: datetime
    ) -> Sequence[Fragment]:
        may_silence = may_operate(viewer)
        firing = replace(facts.firing, may_silence=may_silence)
        return alert_fragments(firing, SilencesView(facts.silences, may_silence), facts.ended)


ALERTS = AlertsPage()


_board = Board[Sequence[AlertLine]](_("critical alerts"), critical_alerts, ())


async def alert_updates(runtime: Runtime, viewer: Viewer) -> AsyncIterator[Sequence[PageUpdate]]:
    """Yield the line about critical alerts whenever it changes, to those who operate; the first time always."""
    if not may_operate(viewer):
        return
    shown = None
    while True:
        await asyncio.sleep(LOOK_SECONDS + random.random() * SPREAD_SECONDS)
        fragment = critical_fragment(await _board.value(KEPT_SECONDS))
        if fragment != shown:
            shown = fragment
            yield [PageUpdate("replace", fragment.id, (fragment,))]
