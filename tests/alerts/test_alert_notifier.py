"""Operators are told of alerts by the channels that they chose: once when one fires, once when it is over, of many in one message."""

from datetime import timedelta
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from grid.alerts import alert_notifier
from grid.alerts.alert_notifier import has_unsent, tell_operators
from grid.alerts.webhook import HeardAlert, keep
from grid.models import Alert, AlertSilence, Delivery, Notification, NotificationChoice
from tests.conftest import People
from tests.support.shop import NOW


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


@pytest.mark.django_db
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


@pytest.mark.django_db
def test_thirty_alerts_at_once_are_one_message(people: People) -> None:
    for number in range(30):
        hear(number)
    hear(30, labels={"alertname": "No\ncontroller"})
    assert tell_operators(now=NOW) == 31
    rows = [row for row in notified() if row[0] == people.operator.username]
    assert rows == [(people.operator.username, "31 alerts fire", "Firing: NodeNotReady (30) and No controller.")]


@pytest.mark.django_db
def test_operator_who_chose_none_is_not_notified(people: People) -> None:
    off = {"in_page": False, "email": False, "webhook": False}
    NotificationChoice.objects.create(user=people.operator, event="alert", **off)
    hear()
    tell_operators(now=NOW)
    assert [name for name, *_ in notified()] == [people.admin.username]


@pytest.mark.django_db
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


@pytest.mark.django_db
def test_unnotified_ended_alert_takes_no_slot_of_later_ones(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alert_notifier, "MOST", 2)
    for number in range(2):
        hear(number)
        hear(number, "resolved")
    hear(2)
    assert has_unsent(NOW)
    assert [tell_operators(now=NOW) for _ in range(3)] == [0, 1, 0]
    assert not has_unsent(NOW)
