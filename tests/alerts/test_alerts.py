"""Alerts: what is taken from an Alertmanager and from nobody else, kept once, shown with what to do, and silenced by those who operate."""

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.template.loader import render_to_string
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from dashboard.alerts import page as pages
from dashboard.alerts.page import ALERTS
from dashboard.alerts.viewmodel import SilencesView, alert_line, runbook_html, section_of, silence_line
from dashboard.shell.access import Role, assign_role
from grid.alerts import silences
from grid.alerts.webhook import LONGEST, keep, read_post
from grid.configuration import INCIDENT_RETENTION
from grid.controller import retention
from grid.models import Alert, AlertSilence, AuditEntry, User
from tests.conftest import People, client_of
from tests.shell.live import connected
from tests.support.builders import MOMENT
from tests.support.golden import assert_golden

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runtime")]
TOKEN = "a-long-random-text"
AT = datetime(2026, 3, 4, 9, 0, tzinfo=UTC)
LABELS = {"alertname": "NoControllerLeads", "severity": "page"}
TOLD = {"summary": "No controller leads.", "description": "For 5 min.", "runbook": "no-controller-leads"}
HOSTILE = "<script>alert(1)</script>"


def posted(status: str = "firing", *, started: datetime = AT, **changes: Any) -> bytes:
    over = AT + timedelta(minutes=9)
    ends = over.isoformat() if status == "resolved" else "0001-01-01T00:00:00Z"
    alert = {
        "status": status, "labels": LABELS, "annotations": TOLD, "startsAt": started.isoformat().replace("+00:00", ".123456789Z"),
        "endsAt": ends, "generatorURL": "http://x/", "fingerprint": "f1", **changes,
    }  # fmt: skip
    return json.dumps({"version": "4", "status": status, "alerts": [alert]}).encode()


def post(body: bytes, token: str = TOKEN) -> Any:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return Client(enforce_csrf_checks=True).post(
        "/alerts/received/", body, content_type="application/json", headers=headers
    )


@pytest.fixture
def listens(settings: Any) -> None:
    settings.ALERTS_TOKEN = TOKEN


def test_receiver_is_closed_without_token_and_refuses_wrong_ones(settings: Any) -> None:
    assert post(posted()).status_code == 404
    settings.ALERTS_TOKEN = TOKEN
    for wrong in ("", "another", TOKEN + "x", "é"):
        assert post(posted(), wrong).status_code == 403
    assert not Alert.objects.exists()


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[]", b"\xff", b'{"version": "3", "alerts": []}', b'{"version": "4"}', posted(fingerprint=""),
        posted(fingerprint="x" * 65),
        posted(startsAt="yesterday"), posted(startsAt="2026-03-04T09:00:00"),
        posted(startsAt="0001-01-01T00:00:00+14:00"), posted(fingerprint="a\0b"), posted(labels={"a": 1}),
        json.dumps({"version": "4", "alerts": [json.loads(posted())["alerts"][0]] * 501}).encode(),
    ],
)  # fmt: skip
def test_invalid_post_to_receiver_is_refused_with_a_sentence(listens: None, body: bytes) -> None:
    answer = post(body)
    assert answer.status_code == 400
    assert answer.json()["error"].endswith((".", "500."))
    assert not Alert.objects.exists()


def test_alert_is_stored_once_with_its_latest_status(listens: None) -> None:
    for status in ("firing", "firing", "resolved", "firing", "resolved"):
        assert post(posted(status)).json() == {"alerts": 1}
    alert = Alert.objects.get()
    assert (alert.name, alert.severity) == ("NoControllerLeads", "page")
    assert alert.annotations["runbook"] == "no-controller-leads"
    assert alert.ended_at == AT + timedelta(minutes=9)
    assert post(posted("firing")).status_code == 200
    assert Alert.objects.get().ended_at is None, "Alertmanager had only heard nothing of it for a while"
    assert post(posted(started=AT + timedelta(hours=1))).status_code == 200
    assert Alert.objects.count() == 2


def test_hostile_alert_is_bounded_and_harmless(listens: None, people: People) -> None:
    evil = {
        "alertname": "<script>alert(1)</script>\0",
        "node": "../../x",
        "execution": "a.b",
        "severity": "\0",
        **{f"l{n}": "x" * 9000 for n in range(99)},
    }
    assert post(posted(labels=evil, annotations={"runbook": "../secrets", "summary": "<b>"})).status_code == 200
    alert = Alert.objects.get()
    assert len(alert.labels) == 40
    assert max(map(len, alert.labels.values())) == LONGEST
    page = client_of(people.operator).get("/alerts/").content.decode()
    assert "<script>alert" not in page
    assert "../secrets" not in page
    assert "/nodes/.." not in page


def test_page_shows_firing_alerts_with_steps_and_ended_ones(listens: None, people: People) -> None:
    now = timezone.now().replace(microsecond=0)
    keep(read_post(posted(started=now, labels={**LABELS, "namespace": "compute-grid", "pod": "workspace-a"})), now)
    keep(read_post(posted(started=AT, fingerprint="f2", labels={"alertname": "Old", "severity": "ticket"})), AT)
    keep(read_post(posted("resolved", fingerprint="f3")), now)
    page = client_of(people.operator).get("/alerts/").content.decode()
    firing, over = page.split('id="ended-title"')
    assert "/alerts/steps/no-controller-leads/" in firing
    assert "/pods/compute-grid/workspace-a/" in firing
    assert "it may be over" in firing
    assert over.count("NoControllerLeads") == 1


def test_the_table(listens: None) -> None:
    rows: tuple[tuple[str, str, dict[str, str], dict[str, str]], ...] = (
        ("NoControllerLeads", "page", {"node": "node-a"}, TOLD),
        ("Slow", "ticket", {"namespace": "a", "pod": "b", "node": "c", "pool": "GPU_1"}, {}),
        ("Hostile", "ticket", {"pool": "../<b>", "node": "A/B"}, {}),
        ("Other", "none", {}, {"summary": "<b>"}),
    )
    lines = []
    for number, (name, severity, labels, annotations) in enumerate(rows, 1):
        columns = {"labels": labels, "annotations": annotations, "started_at": AT, "heard_at": AT}
        lines.append(alert_line(Alert(pk=number, name=name, severity=severity, **columns), AT))
    context = {"lines": lines, "title_id": "t", "is_over": False, "may_silence": True, "now": AT}
    assert_golden("alerts-firing", render_to_string("alerts/fragments/alert_table.html", context))


def test_ended_alerts_are_paged(listens: None, people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "PER_PAGE", 2)
    for number in range(5):
        over = posted("resolved", fingerprint=f"f{number}", labels={"alertname": f"Alert{number}"})
        keep(read_post(over), timezone.now())
    client, path, seen = client_of(people.operator), "/alerts/", list[str]()
    while path:
        page = client.get(path).content.decode()
        seen += [f"Alert{number}" for number in range(5) if f"Alert{number}<" in page]
        older = re.search(r'href="(/alerts/\?before=\d+-\d+)"', page)
        path = older[1] if older else ""
        Alert.objects.filter(name=seen[-1]).delete()
    assert sorted(seen) == [f"Alert{number}" for number in range(5)]
    for unknown in ("9" * 400, "x", "9-", "1\0-2"):
        assert "This link names no page" in client.get("/alerts/", {"before": unknown}).content.decode()
    assert "Nothing older is kept." in client.get("/alerts/?before=1-1").content.decode()


def test_a_section_is_shown_escaped() -> None:
    document = """# All

## One & two
A `code <b>` and **bold** [link](javascript:alert).
- first
  goes on
- second

End.

## Next
x
"""
    title, text = section_of(document, "one--two")
    assert title == "One & two"
    assert_golden("runbook-section", runbook_html(text), ending="html")
    assert section_of(document, "nothing") == ("", "")


def test_old_alerts_go_with_the_incidents(listens: None) -> None:
    post(posted("resolved"))
    post(posted(fingerprint="silent"))
    assert retention.drop_alerts(AT + timedelta(days=1), 10) == 0
    assert retention.drop_alerts(timezone.now() + timedelta(days=INCIDENT_RETENTION.default + 1), 10) == 2
    assert not Alert.objects.exists()


def critical(id: str = "f1", **changes: Any) -> None:
    keep(read_post(posted(fingerprint=id, **changes)), timezone.now())


def test_critical_alert_is_on_every_page_of_operators_only(people: People) -> None:
    critical()
    critical("f2", labels={"alertname": "Slow", "severity": "ticket"})
    page = client_of(people.operator).get("/help/").content.decode()
    line = page.split('id="alert-lines"')[1].split("<main")[0]
    assert "NoControllerLeads: No controller leads." in line
    assert "/alerts/steps/no-controller-leads/" in line
    assert f"/alerts/#alert-{Alert.objects.get(fingerprint='f1').pk}" in line
    assert "Slow" not in line
    assert "NoControllerLeads" in client_of(people.admin).get("/help/").content.decode()
    auditor = User.objects.create_user(username="audrey")
    assign_role(auditor, Role.AUDITOR)
    for person in (people.owner, people.stranger, auditor):
        assert "NoControllerLeads" not in client_of(person).get("/help/").content.decode()


@pytest.mark.parametrize("gone", ["resolved", "silenced", "silent"])
def test_the_line_is_gone_when_the_alert_is(gone: str, people: People) -> None:
    critical()
    assert pages.critical_alerts(timezone.now())
    if gone == "resolved":
        critical(status="resolved")
    elif gone == "silenced":
        until = timezone.now() + timedelta(hours=1)
        AlertSilence.objects.create(name="x", matchers=LABELS, reason="known", author_name="olga", until_at=until)
    else:
        Alert.objects.update(heard_at=timezone.now() - timedelta(hours=6))
    assert not pages.critical_alerts(timezone.now())
    if gone == "silenced":
        assert "Silenced by olga until" in client_of(people.operator).get("/alerts/").content.decode()


async def test_open_pages_show_a_critical_alert_and_its_end(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("LOOK_SECONDS", 0.0), ("SPREAD_SECONDS", 0.02), ("KEPT_SECONDS", 0.0)):
        monkeypatch.setattr(pages, name, seconds)
    monkeypatch.setattr(ALERTS.__class__, "tick_seconds", 0.05)
    async with connected("/live/home/", people.operator) as home, connected("/live/alerts/", people.operator) as page:
        await page.message_about("Nothing fires.")
        await sync_to_async(critical)()
        await home.message_about("NoControllerLeads: No controller leads.")
        assert "Steps" in await page.message_about("alerts-firing")
        await sync_to_async(critical)(status="resolved")
        assert "NoControllerLeads" not in await home.message_about("alert-lines")


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
