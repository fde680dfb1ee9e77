"""Silences reach Alertmanager however long it is away, and what it says holds here; operators are told of alerts, once."""

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, ParamSpec, TypeVar

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from asgiref.sync import sync_to_async
from pytest_django.fixtures import Settings

from grid.alerts import alert_notifier
from grid.alerts.alert_notifier import has_unsent, tell_operators
from grid.alerts.silence_sync import (
    ELSEWHERE,
    MISSING,
    Alertmanager,
    AlertmanagerGone,
    AlertmanagerRefused,
    KnownSilence,
    SilenceSynchronizer,
    _State,
)
from grid.alerts.webhook import HeardAlert, keep
from grid.models import Alert, AlertSilence, Delivery, Notification, NotificationChoice
from tests.conftest import People
from tests.support.golden import assert_golden
from tests.support.shop import NOW

pytestmark = pytest.mark.django_db(transaction=True)
HOUR = timedelta(hours=1)
HELD = '[{"id": "ID", "status": {"state": "active"}, "endsAt": "2026-03-04T09:00:00Z"}]'
P = ParamSpec("P")
T = TypeVar("T")


class FakeAlertmanager(Alertmanager):
    """Has silences and alerts, and is `broken` with an error or None."""

    def __init__(self) -> None:
        self.held: dict[str, KnownSilence] = {}
        self.broken: Exception | None = None
        self.known = frozenset[str]()

    def _try(self) -> None:
        if self.broken is not None:
            raise self.broken

    async def create_silence(self, matchers: Mapping[str, str], **values: Any) -> str:
        self._try()
        id = f"id-{len(self.held)}"
        self.held[id] = KnownSilence(id, _State("active"), values["ends_at"], values["by"], values["comment"])
        return id

    async def silences(self) -> Sequence[KnownSilence]:
        self._try()
        return list(self.held.values())

    async def end_silence(self, id: str) -> None:
        self._try()
        self.change(id, status=_State("expired"))

    async def fingerprints(self) -> frozenset[str]:
        self._try()
        return self.known

    def change(self, id: str, **changes: Any) -> None:
        self.held[id] = msgspec.structs.replace(self.held[id], **changes)


class Stage:
    """The synchronizer in front of the fake, at a time that moves by hand."""

    def __init__(self) -> None:
        self.manager, self.now = FakeAlertmanager(), NOW
        self.synchronizer = SilenceSynchronizer(self.manager, self._run, lambda: self.now)

    async def _run(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await sync_to_async(work)(*args, **kwargs)

    async def synchronise(self, silence: AlertSilence) -> AlertSilence:
        with contextlib.suppress(AlertmanagerGone, AlertmanagerRefused):
            await self.synchronizer.run_once()
        await silence.arefresh_from_db()
        return silence


async def silence() -> AlertSilence:
    return await AlertSilence.objects.acreate(
        name="Slow", matchers={"alertname": "Slow"}, reason="Known.", author_name="olga", until_at=NOW + HOUR
    )


async def test_silence_is_synchronised_with_alertmanager_and_ended_there() -> None:
    stage, row = Stage(), await silence()
    stage.manager.broken = AlertmanagerGone("Alertmanager is away.")
    assert (await stage.synchronise(row)).alertmanager_problem == "Alertmanager is away."
    stage.manager.broken = AlertmanagerRefused("Alertmanager does not take it (400): no.")
    assert "does not take it" in (await stage.synchronise(row)).alertmanager_problem
    stage.manager.broken = None
    for _ in range(2):
        await stage.synchronise(row)
    assert (row.alertmanager_id, row.alertmanager_problem, len(stage.manager.held)) == ("id-0", "", 1)
    assert stage.manager.held["id-0"].created_by == "olga"
    await AlertSilence.objects.filter(pk=row.pk).aupdate(alertmanager_id="")
    assert (await stage.synchronise(row)).alertmanager_id == "id-0", (
        "killed before it had noted the id, it does not ask twice"
    )
    await AlertSilence.objects.filter(pk=row.pk).aupdate(until_at=stage.now, ended_by_name="ada")
    stage.manager.broken = AlertmanagerGone("Alertmanager is away.")
    assert (await stage.synchronise(row)).alertmanager_id == "id-0"
    stage.manager.broken = None
    assert (await stage.synchronise(row)).alertmanager_id == ""
    assert stage.manager.held["id-0"].is_over


async def test_silence_ended_before_its_answer_ends_in_alertmanager_too(settings: Settings) -> None:
    stage, row = Stage(), await silence()
    settings.DASHBOARD_ORIGIN = "https://grid.example.com"
    await stage.synchronise(row)
    assert stage.manager.held["id-0"].comment == f"Known. (https://grid.example.com/alerts/, silence {row.pk})"
    stage.manager.held["id-9"] = KnownSilence(
        "id-9", _State("active"), row.until_at, "olga", f"Known. (https://other.example.com/alerts/, silence {row.pk})"
    )
    await AlertSilence.objects.filter(pk=row.pk).aupdate(alertmanager_id="", until_at=stage.now, ended_by_name="ada")
    stage.manager.broken = AlertmanagerGone("Alertmanager is away.")
    await stage.synchronise(row)
    stage.manager.broken = None
    stage.now += 9 * HOUR
    assert (await stage.synchronise(row)).alertmanager_problem == ""
    assert stage.manager.held["id-0"].is_over
    assert not stage.manager.held["id-9"].is_over, "another installation's, with the same number and reason"


async def test_changes_of_silence_in_alertmanager_hold_here() -> None:
    stage, row = Stage(), await silence()
    await stage.synchronise(row)
    stage.manager.change("id-0", ends_at=NOW + 3 * HOUR)
    assert (await stage.synchronise(row)).until_at == NOW + 3 * HOUR
    stage.manager.held.clear()
    for _ in range(2):
        await stage.synchronise(row)
    assert len(stage.manager.held) == 1, "Alertmanager had lost it"
    stage.manager.change(row.alertmanager_id, status=_State("expired"))
    await stage.synchronise(row)
    assert (row.until_at, row.ended_by_name, row.alertmanager_id) == (NOW, ELSEWHERE, "")


async def test_alert_unknown_to_alertmanager_for_long_is_over() -> None:
    stage = Stage()
    alert = await Alert.objects.acreate(fingerprint="f1", name="Slow", started_at=NOW, heard_at=NOW - HOUR)
    stage.manager.known = frozenset({"f1"})
    await stage.synchronizer.run_once()
    await alert.arefresh_from_db()
    assert alert.heard_at == NOW
    stage.manager.known = frozenset()
    for moves, is_over in ((HOUR, False), (MISSING / 2, False), (MISSING / 2, True)):
        stage.now += moves
        await stage.synchronizer.run_once()
        await alert.arefresh_from_db()
        assert (alert.ended_at is not None) is is_over


async def test_while_alertmanager_is_away_nothing_is_missing() -> None:
    stage, row = Stage(), await silence()
    alert = await Alert.objects.acreate(fingerprint="f1", name="Slow", started_at=NOW, heard_at=NOW - HOUR)
    await stage.synchronizer.run_once()
    stage.manager.broken = AlertmanagerGone("Alertmanager is away.")
    await stage.synchronise(row)
    stage.manager.broken = None
    stage.now += MISSING
    await stage.synchronizer.run_once()
    await alert.arefresh_from_db()
    assert alert.ended_at is None, "Prometheus has not had the time to tell it again"


@pytest.fixture
async def answers() -> AsyncIterator[Callable[..., Any]]:
    """Starts a server that answers every request so, and returns its address."""
    servers = list[TestServer]()

    async def start(status: int, text: str) -> str:
        async def answer(request: web.Request) -> web.Response:
            return web.Response(status=status, text=text, content_type="application/json")

        application = web.Application()
        application.router.add_route("*", "/{path:.*}", answer)
        servers.append(TestServer(application))
        await servers[-1].start_server()
        return str(servers[-1].make_url("/prefix/"))

    yield start
    for server in servers:
        await server.close()


WRONG = [
    (500, "{}"),
    (401, ""),
    (302, ""),
    (200, "<html>"),
    (200, HELD.replace("ID", "../x")),
    (400, '"bad matcher\\n"'),
]


async def test_wrong_answer_is_told(answers: Any) -> None:
    blocks = []
    for status, text in WRONG:
        with pytest.raises((AlertmanagerGone, AlertmanagerRefused)) as raised:
            await Alertmanager(await answers(status, text)).silences()
        blocks.append(f"> {status} {text}\n{raised.typename}: {raised.value}")
    assert_golden("words-of-alertmanager", "\n".join(blocks), ending="txt")


async def test_unreachable_alertmanager_is_reported_without_its_address() -> None:
    for url in ("http://user:secret@127.0.0.1:9", "http://[", "nowhere"):
        with pytest.raises(AlertmanagerGone, match="cannot be reached") as raised:
            await Alertmanager(url).fingerprints()
        assert "secret" not in str(raised.value)


def hear(number: int = 0, status: str = "firing", **changes: Any) -> Alert:
    known: dict[str, Any] = {
        "labels": {"alertname": "NodeNotReady", "severity": "page", "node": f"node-{number}"},
        "annotations": {"summary": "A node is not ready.", "description": f"node-{number}"},
    }
    at = NOW - timedelta(minutes=5)
    keep([HeardAlert(status=status, starts_at=at, fingerprint=f"f{number}", **(known | changes))], NOW)
    return Alert.objects.get(fingerprint=f"f{number}")


def notified() -> list[tuple[str, str, str]]:
    """Who was told what, and forget it."""
    rows = [(row.user.username, row.title, row.sentence) for row in Notification.objects.order_by("pk")]
    Notification.objects.all().delete()
    return rows


def test_operators_are_notified_once_of_firing_and_end(people: People, settings: Settings) -> None:
    settings.EMAIL_HOST, settings.DEFAULT_FROM_EMAIL = "mail.example.com", "grid@example.com"
    people.operator.email = "olga@example.com"
    people.operator.save()
    alert = hear()
    assert tell_operators(now=NOW) == 1
    row = Notification.objects.get(user=people.operator)
    assert (row.event, row.path) == ("alert", f"/alerts/#alert-{alert.pk}")
    fires = ("NodeNotReady fires", "A node is not ready. node-0.")
    assert set(notified()) == {(people.operator.username, *fires), (people.admin.username, *fires)}
    assert [(delivery.user, delivery.channel) for delivery in Delivery.objects.all()] == [(people.operator, "email")]
    hear()
    assert tell_operators(now=NOW) == 0, "Alertmanager tells again of what fires"
    hear(status="resolved")
    for _ in range(2):
        tell_operators(now=NOW)
    assert sorted(title for _, title, _ in notified()) == ["NodeNotReady is over"] * 2
    hear()
    tell_operators(now=NOW)
    assert {title for _, title, _ in notified()} == {"NodeNotReady fires"}, "it was believed to be over"


def test_thirty_alerts_at_once_are_one_message(people: People) -> None:
    for number in range(30):
        hear(number)
    hear(30, labels={"alertname": "No\ncontroller"})
    assert tell_operators(now=NOW) == 31
    rows = [row for row in notified() if row[0] == people.operator.username]
    assert rows == [(people.operator.username, "31 alerts fire", "Firing: NodeNotReady (30) and No controller.")]


def test_operator_who_chose_none_is_not_notified(people: People) -> None:
    off = {"in_page": False, "email": False, "webhook": False}
    NotificationChoice.objects.create(user=people.operator, event="alert", **off)
    hear()
    tell_operators(now=NOW)
    assert [name for name, *_ in notified()] == [people.admin.username]


def test_silenced_alert_is_notified_after_silence_unless_already_over(people: People) -> None:
    hear(0)
    hear(1)
    matchers = {"alertname": "NodeNotReady"}
    silence = AlertSilence.objects.create(
        name="x", matchers=matchers, reason="known", until_at=NOW + timedelta(seconds=1)
    )
    AlertSilence.objects.create(name="y", matchers={}, reason="of nothing", until_at=NOW + timedelta(days=9))
    assert not has_unsent(NOW)
    assert tell_operators(now=NOW) == 0
    hear(1, "resolved")
    assert tell_operators(now=silence.until_at) == 1
    assert {title for _, title, _ in notified()} == {"NodeNotReady fires"}
    assert not has_unsent(silence.until_at)


def test_unnotified_ended_alert_takes_no_slot_of_later_ones(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alert_notifier, "MOST", 2)
    for number in range(2):
        hear(number)
        hear(number, "resolved")
    hear(2)
    assert has_unsent(NOW)
    assert [tell_operators(now=NOW) for _ in range(3)] == [0, 1, 0]
    assert not has_unsent(NOW)
