"""Synchronises silences with Alertmanager, and which alerts are over: retried every ten seconds until both sides agree.

A silence that somebody ended or lengthened in Alertmanager is so here, too; one that Alertmanager has lost is created again.

Alertmanager tells nobody of the end of an alert while it is silenced. So it is asked which alerts it knows, and what it no longer knows,
for long enough for Prometheus to repeat it, is over.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, TypeVar

import aiohttp
import msgspec
from django.conf import settings
from django.db.models import Q

from grid.core.decoding import prepared
from grid.core.errors import GridError, why_unreached
from grid.core.translation import gettext as _
from grid.core.wording import one_line
from grid.database.periodic import PeriodicTask
from grid.database.seam import Database
from grid.models import Alert, AlertSilence

logger = logging.getLogger(__name__)
# https://github.com/prometheus/alertmanager/blob/main/api/v2/openapi.yaml
SECONDS = 10.0  # for one request
MOST_BYTES = 32 * 1024 * 1024  # of an answer: some ten thousand alerts
_ANSWER_LENGTH = 120  # characters of its own words

LOOK_SECONDS = 10.0
MISSING = timedelta(minutes=5)  # Prometheus repeats what fires each minute, also after a restart of Alertmanager
UNSURE = timedelta(hours=1)  # how long a silence that was ended here is looked for in Alertmanager in any case
HEARD = timedelta(minutes=30)  # between two notes that an alert is still known
ELSEWHERE = "somebody in Alertmanager"  # stored, and looked for
MOST = 500
_PROBLEM = 300

T = TypeVar("T")
_Id = Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9_-]{1,64}$")]  # what is stored, and part of a path


class AlertmanagerGone(GridError):
    """Raised when Alertmanager does not answer, or not as it should; the text is a sentence without the URL, which may hold a password."""


class AlertmanagerRefused(GridError):
    """Raised when Alertmanager does not take what it is sent; the text is a sentence."""


class KnownAlert(msgspec.Struct, frozen=True, rename="camel"):
    fingerprint: str


class _State(msgspec.Struct, frozen=True):
    state: str


class KnownSilence(msgspec.Struct, frozen=True, rename="camel"):
    id: _Id
    status: _State
    ends_at: Annotated[datetime, msgspec.Meta(tz=True)]
    created_by: str = ""
    comment: str = ""

    @property
    def is_over(self) -> bool:
        return self.status.state == "expired"


class _Created(msgspec.Struct, frozen=True):
    id: _Id = msgspec.field(name="silenceID")


class Alertmanager:
    """One Alertmanager, or a cluster of them behind one address; `url` may carry a user and a password."""

    def __init__(self, url: str, *, seconds: float = SECONDS) -> None:
        self._url = f"{url.rstrip('/')}/api/v2"
        self._seconds = seconds

    async def create_silence(
        self, matchers: Mapping[str, str], *, starts_at: datetime, ends_at: datetime, by: str, comment: str
    ) -> str:
        equal = {"isRegex": False, "isEqual": True}
        matching = [{"name": name, "value": value, **equal} for name, value in matchers.items()]
        body = {"matchers": matching, "startsAt": starts_at.isoformat(), "endsAt": ends_at.isoformat()}
        body |= {"createdBy": by, "comment": comment}
        return _decoded(await self._ask("POST", "/silences", body), _Created).id

    async def silences(self) -> Sequence[KnownSilence]:
        """Return all silences, those that were over within the last days among them."""
        return _decoded(await self._ask("GET", "/silences"), list[KnownSilence])

    async def end_silence(self, id: str) -> None:
        """End a silence that is not over; an unknown one is none."""
        await self._ask("DELETE", f"/silence/{id}", may_be_unknown=True)

    async def fingerprints(self) -> frozenset[str]:
        """Return the alerts that fire as Alertmanager knows it, silenced and inhibited ones among them."""
        return frozenset(alert.fingerprint for alert in _decoded(await self._ask("GET", "/alerts"), list[KnownAlert]))

    async def _ask(self, method: str, path: str, body: object = None, *, may_be_unknown: bool = False) -> bytes:
        try:
            async with (
                asyncio.timeout(self._seconds),
                aiohttp.ClientSession() as session,
                session.request(method, f"{self._url}{path}", json=body, allow_redirects=False) as response,
            ):
                status, answer = response.status, await _read(response.content)
        except TimeoutError as error:
            sentence = _("Alertmanager did not answer within {seconds:.0f} seconds.", seconds=self._seconds)
            raise AlertmanagerGone(sentence) from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            sentence = _("Alertmanager cannot be reached: {why}.", why=why_unreached(error))
            raise AlertmanagerGone(sentence) from error
        if status != 404 or not may_be_unknown:
            _check(status, answer)
        return answer


async def _read(content: aiohttp.StreamReader) -> bytes:
    parts, size = [], 0
    async for part in content.iter_any():
        parts.append(part)
        size += len(part)
        if size > MOST_BYTES:
            raise AlertmanagerGone(_("Alertmanager answers with more than can be read."))
    return b"".join(parts)


def _check(status: int, answer: bytes) -> None:
    """Raise unless the request was granted; 4xx is about what was sent, except for rights."""
    if status < 300:
        return
    if status in (401, 403):
        sentence = _("Alertmanager refuses this installation's user and password ({status}).", status=status)
        raise AlertmanagerGone(sentence)
    if status in (400, 422):
        words = one_line(answer[:1000].decode(errors="replace")).strip('" ')[:_ANSWER_LENGTH]
        raise AlertmanagerRefused(_("Alertmanager does not take it ({status}): {answer}", status=status, answer=words))
    raise AlertmanagerGone(_("Alertmanager answers with status {status}.", status=status))


def _decoded(answer: bytes, type: type[T]) -> T:
    try:
        return msgspec.json.decode(answer, type=prepared(type))
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        raise AlertmanagerGone(_("Alertmanager does not answer as version 2 of its API does.")) from error


def silences_to_pass(now: datetime) -> list[AlertSilence]:
    """Return the silences in force, and those ended here that Alertmanager may still have, noted or because its answer came too late."""
    may_have = ~Q(alertmanager_id="") | ~Q(alertmanager_problem="") | Q(until_at__gt=now - UNSURE)
    rows = AlertSilence.objects.filter(Q(until_at__gt=now) | ~Q(ended_by_name="") & may_have)
    return list(rows.exclude(ended_by_name=ELSEWHERE).order_by("pk")[:MOST])


def note(pk: int, columns: Mapping[str, object], **conditions: object) -> None:
    """Write the columns of the silence, unless a condition no longer holds, such as that it was not ended here meanwhile."""
    AlertSilence.objects.filter(pk=pk, **conditions).update(**columns)


def note_gone(ids: Sequence[int], problem: str) -> None:
    AlertSilence.objects.filter(pk__in=ids).exclude(alertmanager_problem=problem).update(alertmanager_problem=problem)


def note_known(fingerprints: frozenset[str], missing: dict[int, datetime], now: datetime) -> dict[int, datetime]:
    """Note which firing alerts Alertmanager knows, end those that it has not known for long, and return since when others are missing."""
    still: dict[int, datetime] = {}
    heard = []
    firing = Alert.objects.filter(ended_at=None).only("fingerprint", "name", "heard_at")
    for alert in firing.order_by("pk")[: 10 * MOST]:
        if alert.fingerprint in fingerprints:
            if now - alert.heard_at > HEARD:
                heard.append(alert.pk)
            continue
        since = missing.get(alert.pk, now)
        if now - since < MISSING or now - alert.heard_at < MISSING:
            still[alert.pk] = since
        elif Alert.objects.filter(pk=alert.pk, ended_at=None, heard_at=alert.heard_at).update(ended_at=now):
            logger.info("an alert is over, Alertmanager no longer knows it alert=%s", alert.name)
    Alert.objects.filter(pk__in=heard).update(heard_at=now)
    return still


class SilenceSynchronizer:
    def __init__(self, alertmanager: Alertmanager, database: Database, clock: Callable[[], datetime]) -> None:
        self._alertmanager = alertmanager
        self._database = database
        self._clock = clock
        self._missing: dict[int, datetime] = {}

    def periodic(self) -> PeriodicTask:
        return PeriodicTask("silences", LOOK_SECONDS, self.run_once)

    async def run_once(self) -> None:
        """Compare both sides once. Raise what Alertmanager says when it does not answer, or does not take it."""
        # While it does not answer, nothing is missing.
        missing, self._missing = self._missing, {}
        rows = await self._database(silences_to_pass, self._clock())
        try:
            await self._sync_all(rows)
        except (AlertmanagerGone, AlertmanagerRefused) as gone:
            await self._database(note_gone, [row.pk for row in rows], str(gone)[:_PROBLEM])
            raise
        known = await self._alertmanager.fingerprints()
        self._missing = await self._database(note_known, known, missing, self._clock())

    async def _sync_all(self, rows: Sequence[AlertSilence]) -> None:
        """Pass each silence on, and note why one is refused. Raise AlertmanagerGone at once: the others would only wait as long."""
        held = await self._alertmanager.silences() if rows else ()
        for row in rows:
            try:
                await self._pass(row, held)
            except AlertmanagerRefused as refused:
                await self._database(note, row.pk, {"alertmanager_problem": str(refused)[:_PROBLEM]})

    async def _pass(self, row: AlertSilence, held: Sequence[KnownSilence]) -> None:
        """Make Alertmanager have what the row says, or the row what Alertmanager has."""
        now = self._clock()
        # A controller that was killed after it had asked knows only the comment; another installation may have the same Alertmanager.
        comment = f"{row.reason} ({settings.DASHBOARD_ORIGIN}/alerts/, silence {row.pk})"
        same = [known for known in held if known.id == row.alertmanager_id or known.comment == comment]
        active = [known.id for known in same if not known.is_over]
        if row.ended_by_name or row.until_at <= now:  # the clock of whoever ended it may be ahead
            for id in active:
                await self._alertmanager.end_silence(id)
            if row.alertmanager_id or row.alertmanager_problem:
                await self._database(note, row.pk, {"alertmanager_id": "", "alertmanager_problem": ""})
        elif row.alertmanager_id:
            await self._compare(row, next((known for known in same if known.id == row.alertmanager_id), None))
        else:
            id = next(iter(active), "") or await self._alertmanager.create_silence(
                row.matchers, starts_at=now, ends_at=row.until_at, by=row.author_name, comment=comment
            )
            await self._database(note, row.pk, {"alertmanager_id": id, "alertmanager_problem": ""})

    async def _compare(self, row: AlertSilence, known: KnownSilence | None) -> None:
        fine = {"alertmanager_problem": ""}
        if known is None:
            await self._database(note, row.pk, {"alertmanager_id": ""})
        elif known.is_over:
            ended = {"until_at": self._clock(), "ended_by_name": ELSEWHERE, "alertmanager_id": "", **fine}
            await self._database(note, row.pk, ended, ended_by_name="")
        elif abs(known.ends_at - row.until_at) > timedelta(seconds=1):
            moved = {"until_at": known.ends_at, **fine}
            await self._database(note, row.pk, moved, until_at=row.until_at, ended_by_name="")
        elif row.alertmanager_problem:
            await self._database(note, row.pk, fine)
