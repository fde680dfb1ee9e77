"""Silencing alerts: by those who operate, for a time and with a reason, listed and ended, refused with a sentence."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.template.loader import render_to_string
from django.utils import timezone
from pytest_django.fixtures import Settings

from dashboard.alerts.viewmodel import SilencesView, silence_line
from grid.alerts import silences
from grid.models import Alert, AlertSilence, AuditEntry, User
from tests.conftest import People
from tests.shell.browsing import client_of
from tests.support.builders import MOMENT
from tests.support.golden import assert_golden

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runtime")]
HOSTILE = "<script>alert(1)</script>"


def fires(name: str = "NodeNotReady", **labels: str) -> Alert:
    now = timezone.now()
    known = {"alertname": name, "severity": "page", "node": "node-a"} | labels
    return Alert.objects.create(
        fingerprint=name, name=name, severity="page", labels=known, started_at=now, heard_at=now
    )


def silence(alert: Alert, user: User, **fields: str) -> Any:
    return client_of(user).post(f"/alerts/{alert.pk}/silence/", {"minutes": "240", "reason": "Known."} | fields)


def page_of(user: User) -> str:
    return " ".join(client_of(user).get("/alerts/").content.decode().split())


def test_operator_silences_alert_and_ends_it_with_audit_entries(people: People) -> None:
    alert, other = fires(node="node-<b>"), fires("Other")
    assert "Silence<span" in page_of(people.operator)
    form = client_of(people.operator).get(f"/alerts/{alert.pk}/silence/").content.decode()
    assert "node=node-&lt;b&gt;" in form
    assert silence(alert, people.operator, reason=f"{HOSTILE}\nknown").status_code == 302
    row = AlertSilence.objects.get()
    assert (row.matchers, row.author_name, row.reason) == (alert.labels, "olga-operator", f"{HOSTILE} known")
    assert row.until_at - row.created_at == timedelta(hours=4)
    assert silences.silence_of(other.labels, [row]) is None
    shown = page_of(people.operator)
    assert HOSTILE not in shown
    assert "Silenced by olga-operator until" in shown
    assert "Here only: no Alertmanager is set" in shown
    assert f"/alerts/silences/{row.pk}/end/" in shown
    assert "End it now" in client_of(people.admin).get(f"/alerts/silences/{row.pk}/end/").content.decode()
    for words in ("has ended", "had ended already"):
        answer = client_of(people.admin).post(f"/alerts/silences/{row.pk}/end/", follow=True)
        assert words in answer.content.decode()
    entries = AuditEntry.objects.filter(object_type="alertsilence").order_by("pk").values_list("actor_name", "action")
    assert list(entries) == [("olga-operator", "created"), ("ada-admin", "ended")]
    assert "Silences</h2>" not in page_of(people.operator)


def test_observer_reads_silences_and_changes_nothing(people: People) -> None:
    alert = fires()
    silence(alert, people.operator)
    auditor = User.objects.create_user(username="audrey")
    auditor.groups.create(name="auditors")
    shown = page_of(auditor)
    assert "Silences</h2>" in shown
    assert not re.search(r"/silence/|/end/", shown)
    for person in (auditor, people.owner, people.stranger):
        assert silence(alert, person).status_code == 403
    assert AlertSilence.objects.count() == 1


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"reason": " \n"}, "Say why in at most 300 characters"),
        ({"reason": "x" * 301}, "Say why in at most 300 characters"),
        ({"minutes": "7"}, "Choose for how long."),
    ],
)
def test_a_refusal_says_why_and_keeps_what_was_typed(people: People, fields: dict[str, str], why: str) -> None:
    answer = silence(fires(), people.operator, **fields)
    assert answer.status_code == 422
    shown = answer.content.decode()
    assert why in shown
    assert fields.get("reason", "Known.").strip()[:300] in shown
    assert not AlertSilence.objects.exists()


def test_ended_or_silenced_or_unlabelled_alert_is_not_silenced(people: People) -> None:
    alert = fires()
    silence(alert, people.operator)
    assert "Silenced by olga-operator until" in silence(alert, people.admin).content.decode()
    assert silence(alert, people.admin, minutes="1440").status_code == 302, "longer is possible"
    Alert.objects.update(ended_at=timezone.now())
    assert "This alert is over" in silence(alert, people.admin).content.decode()
    cut = fires("Cut", **{f"l{number}": "v" for number in range(40)})
    assert "Silence it in Alertmanager." in silence(cut, people.admin).content.decode()
    assert AlertSilence.objects.count() == 2


def test_the_list_says_where_a_silence_holds(settings: Settings) -> None:
    hour, gone = timedelta(hours=1), "Alertmanager did not answer within 10 seconds."
    states: tuple[dict[str, Any], ...] = (
        {},
        {"alertmanager_id": "a"},
        {"alertmanager_problem": gone},
        {"alertmanager_id": "a", "until_at": MOMENT, "ended_by_name": "ada", "alertmanager_problem": gone},
    )
    rows = [
        AlertSilence(
            pk=number,
            **{
                "name": "Slow", "matchers": {"alertname": "Slow", "pod": "<b>"}, "reason": "Known.", "author_name": "olga",
                "until_at": MOMENT + hour, **state,
            },
        )
        for number, state in enumerate(states, 1)
    ]  # fmt: skip
    lines = tuple(silence_line(row, MOMENT, has_alertmanager=True) for row in rows)
    context = {"id": "s", "x": SilencesView(lines, may_silence=True), "now": MOMENT}
    alone = [silence_line(row, MOMENT, has_alertmanager=False).state for row in rows]
    assert alone == [*[alone[0]] * 3, alone[3]]
    assert "no Alertmanager is set, so what it sends itself continues" in alone[0]
    assert "no Alertmanager is set that could be asked: end it there" in alone[3]
    assert_golden("alert-silences", render_to_string("alerts/fragments/alert_silences.html", context))
