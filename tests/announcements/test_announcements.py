"""Announcements: operators write them, everybody reads them on every page, each person may hide one."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from dashboard.announcements import records as announced
from dashboard.announcements.viewmodel import Banners, banners_fragment
from grid.models import Announcement, AnnouncementReader, AuditEntry, Execution, User
from grid.runtime import Runtime
from tests.conftest import People, client_of
from tests.executions.executing import ATTACHED, offer_clusters
from tests.shell.live import connected
from tests.support.builders import MOMENT

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runtime")]
HOUR = timedelta(hours=1)
HOSTILE = "</div><script>alert(1)</script>\u202egnp"
NEW = "/announcements/new/"


@pytest.fixture
def operator(people: People) -> User:
    return people.operator


def record(id: str = "a", **fields: Any) -> Announcement:
    return Announcement(id=id, **{"text": "Slow.", "from_at": MOMENT, **fields})


def shown_ids(*records: Announcement, at: Any = MOMENT) -> list[str]:
    banners = banners_fragment(records, at).context
    assert isinstance(banners, Banners)
    return [banner.id for banner in banners.banners]


def text_of(user: User, path: str = "/help/") -> str:
    return str(client_of(user).get(path).content.decode())


def publish(client: Client, text: str = "The registry is slow.", **fields: Any) -> int:
    return client.post(NEW, {"text": text, "severity": "info"} | fields).status_code


# --- When, and to whom ---


def test_announcement_is_shown_from_start_until_before_end() -> None:
    announcement = record(until_at=MOMENT + HOUR)
    assert shown_ids(announcement, at=MOMENT - timedelta(seconds=1)) == []
    assert shown_ids(announcement, at=MOMENT) == ["a"]
    assert shown_ids(announcement, at=MOMENT + HOUR) == []
    assert shown_ids(record(), at=MOMENT + 9000 * HOUR) == ["a"], "without an end it stays until somebody ends it"


def test_warnings_come_first() -> None:
    assert shown_ids(record("a"), record("b", severity="warning"), record("c")) == ["b", "a", "c"]


# --- Writing ---


def test_announcement_of_operator_is_escaped_on_every_page(operator: User, people: People) -> None:
    assert publish(client_of(operator), HOSTILE, severity="warning") == 302
    for user in (people.owner, people.teammate, people.stranger, operator):
        page = text_of(user)
        assert "<script>alert" not in page
        assert "&lt;script&gt;alert" in page
    assert "&lt;script" not in Client().get("/login/").content.decode(), "nobody who is not logged in reads it"
    entry = AuditEntry.objects.get(object_type="announcement")
    assert (entry.actor_name, entry.action, entry.changes["severity"]) == (
        "olga-operator",
        "created",
        [None, "warning"],
    )


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"text": "x" * 301}, "at most 300 characters"),
        ({"text": " "}, "required"),
        ({"until_at": "2020-01-01T00:00"}, "yet to come"),
        ({"from_at": "2999-01-02T00:00", "until_at": "2999-01-01T00:00"}, "after the one from which"),
        ({"from_at": "2999-01-02T00:00", "no_launches_from": "2999-01-01T00:00"}, "shown already"),
        ({"until_at": "2999-01-01T00:00", "no_launches_from": "2999-01-01T00:00"}, "before the announcement ends"),
    ],
)
def test_invalid_announcement_is_explained_at_its_field(operator: User, fields: dict[str, str], why: str) -> None:
    answer = client_of(operator).post(NEW, {"text": "Slow.", "severity": "info"} | fields)
    assert answer.status_code == 400
    assert why in answer.content.decode()
    assert not Announcement.objects.exists()


def test_edit_and_end_are_audited_and_ended_one_vanishes(operator: User, people: People) -> None:
    client = client_of(operator)
    publish(client)
    row = Announcement.objects.get()
    path = f"/announcements/{row.pk}/"
    form = {"text": row.text, "severity": "info", "from_at": f"{row.from_at:%Y-%m-%dT%H:%M}", "until_at": ""}
    client.post(path, form)
    assert AuditEntry.objects.count() == 1, "saved as it was shown, nothing changes"
    client.post(path, form | {"text": "The registry is slow\nagain."})
    assert "The registry is slow again." in text_of(people.stranger)
    for _ in range(2):
        assert client.post(f"{path}end/").status_code == 302
    assert "slow again" not in text_of(people.stranger)
    actions = AuditEntry.objects.filter(object_type="announcement").order_by("pk").values_list("action", flat=True)
    assert list(actions) == ["created", "changed", "ended"]
    client.post(path, form | {"text": "It lives."})
    row.refresh_from_db()
    assert row.text == "The registry is slow again."


def test_person_hides_announcement_alone_and_for_its_life(operator: User, people: People) -> None:
    publish(client_of(operator))
    row = Announcement.objects.get()
    answer = client_of(people.owner).post("/announcements/hide/", {"announcement": row.pk, "next": "/help/"})
    assert answer["Location"] == "/help/"
    Announcement.objects.update(text="It is still slow.")
    assert "still slow" not in text_of(people.owner)
    assert "still slow" in text_of(people.teammate)
    away = client_of(people.owner).post("/announcements/hide/", {"announcement": "x\0", "next": "//evil.test"})
    assert away["Location"] == "/"


# --- Maintenance ---


def test_launch_card_announces_maintenance_and_then_refuses_launches(operator: User, people: People) -> None:
    offer_clusters(people)
    client, posted = (
        client_of(people.owner),
        {name: ATTACHED[name] for name in ("kind", "project", "environment", "tier", "token")},
    )
    assert (
        publish(client_of(operator), "Upgrade", from_at="2999-01-01T00:00", no_launches_from="2999-01-01T18:00") == 302
    )
    card = client.post("/launch/estimate/", posted).content.decode()
    assert "No new launches from 1 January, 18:00 UTC, until an operator ends it: Upgrade." in card
    assert "Not accepted now" not in card
    Announcement.objects.update(from_at=timezone.now(), no_launches_from=timezone.now())
    sentence = "Maintenance until an operator ends it: Upgrade. No new launches before it ends."
    card = client.post("/launch/estimate/", posted).content.decode()
    assert "Not accepted now" in card
    assert sentence in card
    answer = client.post("/launch/", posted)
    assert answer.status_code == 422
    assert sentence in answer.content.decode()
    assert not Execution.objects.exists()


def test_changed_maintenance_times_notify_again_and_changed_words_not(operator: User, people: People) -> None:
    client = client_of(operator)
    publish(client, "Upgrade", from_at="2999-01-01T00:00", no_launches_from="2999-01-01T18:00")
    row = Announcement.objects.get()
    AnnouncementReader.objects.create(announcement=row, user=people.owner, told_at=MOMENT, hidden_at=MOMENT)
    form = {"severity": "info", "from_at": "2999-01-01T00:00", "no_launches_from": "2999-01-01T18:00"}
    client.post(f"/announcements/{row.pk}/", form | {"text": "Upgrade of Kubernetes"})
    assert AnnouncementReader.objects.get().told_at == MOMENT
    client.post(f"/announcements/{row.pk}/", form | {"text": "Upgrade", "until_at": "2999-01-02T00:00"})
    reader = AnnouncementReader.objects.get()
    assert (reader.told_at, reader.hidden_at) == (None, MOMENT)


# --- Open pages ---


async def test_page_follows_announcements(runtime: Runtime, people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(announced, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(announced, "SPREAD_SECONDS", 0.02)
    monkeypatch.setattr(announced, "KEPT_SECONDS", 0.0)
    row = await Announcement.objects.acreate(text="The registry is slow.", from_at=timezone.now())
    hidden = await Announcement.objects.acreate(text="Nothing is slow.", from_at=timezone.now())
    await AnnouncementReader.objects.acreate(announcement=hidden, user=people.owner, hidden_at=timezone.now())
    async with connected("/live/home/", people.owner) as page:
        assert "Nothing is slow." not in await page.message_about("The registry is slow.")
        await Announcement.objects.filter(pk=row.pk).aupdate(until_at=timezone.now())
        assert "announcement-hide" not in await page.message_about("announcements")
