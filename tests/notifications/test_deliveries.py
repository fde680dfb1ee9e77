"""What waits to be sent is given out once, in order, fairly, with back-off, and is neither lost nor tried for ever."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from pytest_django.fixtures import Settings

from grid.configuration import DELIVERY_RETENTION
from grid.controller.retention import drop_deliveries
from grid.core.errors import Rejected
from grid.database.encryption import encrypt
from grid.executions import lifecycle
from grid.executions.lifecycle import Transition
from grid.models import Delivery, Notification, NotificationChoice, State, User, WebhookTarget
from grid.notifications.channels import MOST_TESTS, ask_for_test, external_channels, remove_target, set_target
from grid.notifications.deliveries import (
    LEASE,
    LONGEST_WAIT,
    MAIL_GAP,
    MOST_AGE,
    MOST_TRIES,
    Parcel,
    record_result,
    take_due,
    wait_after,
)
from grid.notifications.letters import SENT, SendResult
from grid.secrets.storedsecrets import encrypt_all_again
from tests.notifications.test_webhook import payload
from tests.support.golden import assert_golden
from tests.support.shop import NOW, Shop

EMAIL, WEBHOOK = Delivery.Channel.EMAIL, Delivery.Channel.WEBHOOK
BAD = SendResult("example.com answered with status 500.")
SECOND = timedelta(seconds=1)
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def mail_server(settings: Settings) -> None:
    settings.EMAIL_HOST, settings.DEFAULT_FROM_EMAIL = "mail.example.com", "grid@example.com"


def person(name: str, url: str, secret: str) -> User:
    user = User.objects.create_user(name, email=f"{name}@example.com")
    WebhookTarget.objects.create(user=user, url=url, secret=encrypt(secret))
    return user


@pytest.fixture
def ada() -> User:
    return person("ada", "https://example.com/hook", "secret")


@pytest.fixture
def eve() -> User:
    return person("eve", "https://slow.example.com/", "other")


def waiting(user: User, channel: str = WEBHOOK, *, at: datetime = NOW, title: str = "Train") -> Delivery:
    return Delivery.objects.create(user=user, channel=channel, payload=payload(title=title), at=at, next_try_at=at)


def take(channel: str = WEBHOOK, *, now: datetime = NOW, at_most: int = 10, busy: tuple[int, ...] = ()) -> list[Parcel]:
    return take_due(channel, busy=busy, at_most=at_most, now=now)


def test_failure_is_queued_for_chosen_configured_channels(shop: Shop, settings: Settings) -> None:
    def fail() -> list[str]:
        Delivery.objects.all().delete()
        execution = shop.launch()
        change = Transition(State.FAILED, "exit_code", "It ended with exit code 1.", level="Warning")
        assert lifecycle.enter(execution.pk, change, revision=execution.revision, left=execution.state, now=NOW)
        return sorted(Delivery.objects.values_list("channel", flat=True))

    owner = shop.people.owner
    assert fail() == [], "without an address"
    owner.email = "alice@example.com"
    owner.save()
    assert fail() == ["email"]
    NotificationChoice.objects.create(user=owner, event="failed", in_page=True, email=True, webhook=True)
    assert fail() == ["email"], "without a target"
    set_target(owner, "https://example.com/")
    assert fail() == ["email", "webhook"]
    settings.EMAIL_HOST = ""
    assert fail() == ["webhook"]
    assert Notification.objects.count() == 5
    assert Delivery.objects.get().payload["sentence"] == "It ended with exit code 1."


def test_taken_delivery_is_exclusive_until_its_lease_expires(ada: User) -> None:
    waiting(ada)
    [parcel] = take()
    assert (parcel.address, parcel.secret, parcel.problem) == ("https://example.com/hook", "secret", None)
    assert take(now=NOW + LEASE - SECOND) == []
    [again] = take(now=NOW + LEASE)
    assert again.message == parcel.message, "so that its receiver can tell"


def test_late_result_counts_only_when_it_was_sent(ada: User) -> None:
    waiting(ada)
    [slow] = take()
    [current] = take(now=NOW + LEASE)
    record_result(slow, BAD, now=NOW + LEASE)
    assert Delivery.objects.get().next_try_at == current.taken_until, "it is the current taker's"
    record_result(slow, SENT, now=NOW + LEASE)
    row = Delivery.objects.get()
    assert (row.next_try_at, row.sent_at) == (None, NOW + LEASE)


def test_tries_are_further_and_further_apart_and_end(ada: User) -> None:
    waiting(ada)
    now, waits = NOW, []
    for _ in range(MOST_TRIES):
        [parcel] = take(now=now)
        record_result(parcel, BAD, now=now)
        row = Delivery.objects.get()
        assert row.error == BAD.error
        if row.next_try_at is not None:
            assert take(now=row.next_try_at - SECOND) == []
            waits.append((row.next_try_at - now).total_seconds() / 60)
            now = row.next_try_at
    assert waits == [1, 2, 4, 8, 16, 32, 60]
    assert (row.next_try_at, row.sent_at, row.tries) == (None, None, MOST_TRIES)
    assert take(now=now + MOST_AGE) == []
    assert wait_after(1000) == LONGEST_WAIT


@pytest.mark.parametrize(
    ("age", "result"), [(MOST_AGE, BAD), (timedelta(), SendResult("It redirects.", True))], ids=["day-old", "final"]
)
def test_old_or_final_failure_is_not_retried(ada: User, age: timedelta, result: SendResult) -> None:
    waiting(ada, at=NOW - age)
    record_result(take()[0], result, now=NOW)
    row = Delivery.objects.get()
    assert (row.next_try_at, row.error) == (None, result.error)


@pytest.mark.parametrize("channel", [WEBHOOK, EMAIL])
def test_delivery_written_after_a_failure_waits_too(ada: User, eve: User, channel: str) -> None:
    waiting(ada, channel, title="First")
    record_result(take(channel)[0], BAD, now=NOW)
    another = EMAIL if channel == WEBHOOK else WEBHOOK
    waiting(ada, another)
    assert len(take(another)) == 1, "a failure delays no other channel"
    waiting(ada, channel, title="Second", at=NOW + SECOND)
    waiting(eve, channel, at=NOW + SECOND)
    id = ask_for_test(ada, channel, now=NOW + SECOND)
    test, other = sorted(take(channel, now=NOW + SECOND), key=lambda parcel: parcel.user_id)
    assert (list(test.ids), other.user_id) == ([id], eve.pk), "a test is tried all the same, and others are"
    assert take(channel, now=NOW + timedelta(seconds=59)) == [], "neither a test under way nor the failure lets it pass"
    [first] = take(channel, now=NOW + timedelta(minutes=1))
    assert [payload["title"] for payload in first.payloads] == ["First"]
    assert take(channel, now=NOW + timedelta(minutes=1)) == [], "while the first is under way"
    record_result(first, SENT, now=NOW + timedelta(minutes=1))
    [second] = take(channel, now=NOW + timedelta(minutes=2))
    assert [payload["title"] for payload in second.payloads] == ["Second"]


def test_repeated_mail_is_identical_and_later_ones_separate(ada: User) -> None:
    for title in ("First", "Second", "Third"):
        waiting(ada, EMAIL, title=title)
    [once] = take(EMAIL)
    assert [payload["title"] for payload in once.payloads] == ["First", "Second", "Third"]
    record_result(once, BAD, now=NOW)
    waiting(ada, EMAIL, title="Fourth")
    again = NOW + timedelta(minutes=1)
    [twice] = take(EMAIL, now=again)
    assert (twice.message, twice.payloads) == (once.message, once.payloads)
    record_result(twice, SENT, now=again)
    assert Delivery.objects.filter(sent_at=again).count() == 3
    assert take(EMAIL, now=again + MAIL_GAP - SECOND) == []
    [other] = take(EMAIL, now=again + MAIL_GAP)
    assert [payload["title"] for payload in other.payloads] == ["Fourth"]
    assert other.message != once.message


def test_tried_mail_is_not_merged_into_an_older_one(ada: User) -> None:
    """A transaction that began earlier may end later."""
    older = waiting(ada, EMAIL, title="Older", at=NOW + timedelta(minutes=1))
    waiting(ada, EMAIL, title="Tried")
    [tried] = take(EMAIL)
    record_result(tried, BAD, now=NOW)
    [parcel] = take(EMAIL, now=NOW + timedelta(minutes=1))
    assert list(parcel.ids) == [older.pk]


def test_person_with_thousands_waiting_delays_nobody_else(ada: User, eve: User) -> None:
    for number in range(100):
        waiting(eve, at=NOW - timedelta(seconds=100 - number))
    waiting(ada)
    parcels = {parcel.user_id: parcel for parcel in take(at_most=2)}
    assert set(parcels) == {ada.pk, eve.pk}
    record_result(parcels[ada.pk], SENT, now=NOW)
    waiting(ada)
    assert [parcel.user_id for parcel in take(busy=(eve.pk,))] == [ada.pk]


@pytest.mark.parametrize(
    ("change", "channel", "why"),
    [
        (lambda user: User.objects.update(is_active=False), WEBHOOK, "The account was closed."),
        (lambda user: User.objects.update(email=""), EMAIL, "Your account no longer has an e-mail address."),
        (remove_target, WEBHOOK, "You have removed the webhook."),
        (
            lambda user: WebhookTarget.objects.update(secret="x"),
            WEBHOOK,
            "The secret of your webhook can no longer be read. Set the webhook again.",
        ),
    ],
)
def test_unsendable_delivery_says_why(ada: User, change: Callable[[User], object], channel: str, why: str) -> None:
    waiting(ada, channel)
    change(ada)
    [parcel] = take(channel)
    assert parcel.problem == SendResult(why, True)
    record_result(parcel, parcel.problem, now=NOW)
    assert Delivery.objects.get().next_try_at is None


def test_mail_without_a_mail_server_waits_for_one(ada: User, settings: Settings) -> None:
    waiting(ada, EMAIL)
    settings.EMAIL_HOST = ""
    [parcel] = take(EMAIL)
    assert parcel.problem == SendResult("The controller knows no mail server. Tell an admin.")
    record_result(parcel, parcel.problem, now=NOW)
    settings.EMAIL_HOST = "mail.example.com"
    [again] = take(EMAIL, now=NOW + timedelta(minutes=1))
    assert (again.address, again.problem) == ("ada@example.com", None)


def test_a_test_goes_alone_at_once_and_only_once(ada: User) -> None:
    waiting(ada, EMAIL)
    record_result(take(EMAIL)[0], SENT, now=NOW)
    waiting(ada, EMAIL)
    id = ask_for_test(ada, EMAIL, now=NOW)
    [parcel] = take(EMAIL)
    assert list(parcel.ids) == [id]
    record_result(parcel, BAD, now=NOW)
    row = Delivery.objects.get(pk=id)
    assert (row.next_try_at, row.error) == (None, BAD.error)


def test_tests_are_limited_to_configured_channels(ada: User, settings: Settings) -> None:
    for _ in range(MOST_TESTS):
        ask_for_test(ada, EMAIL, now=NOW)
    with pytest.raises(Rejected, match="Wait a few minutes"):
        ask_for_test(ada, EMAIL, now=NOW)
    ask_for_test(ada, WEBHOOK, now=NOW)
    ask_for_test(ada, EMAIL, now=NOW + timedelta(minutes=11))
    settings.DEFAULT_FROM_EMAIL = ""
    for channel in (EMAIL, "in_page", "", "x"):
        with pytest.raises(Rejected, match="not set up"):
            ask_for_test(ada, channel, now=NOW)
    assert external_channels(ada) == [WEBHOOK]


PARTS = ["", "http://example.com/", "https://", "https://user:password@example.com/"]
HOSTS = ["https://10.0.0.1/", "https://[::1]/", "https://8.8.8.8/"]
TEXTS = ["https://example.com/a b", "https://example.com/\r\nX: y", f"https://example.com/{'x' * 500}"]


def test_an_address_that_cannot_be_meant_is_refused(ada: User, settings: Settings) -> None:
    settings.EGRESS_EXCEPT = ["8.8.8.0/24"]
    before = WebhookTarget.objects.get()
    blocks = []
    for url in (*PARTS, *HOSTS, *TEXTS):
        with pytest.raises(Rejected) as refused:
            set_target(ada, url)
        blocks.append(f"> {url}\n{refused.value}")
    assert WebhookTarget.objects.get().url == before.url
    assert_golden("words-of-webhook-addresses", "\n".join(blocks), ending="txt")


def test_a_secret_is_new_each_time_and_stored_encrypted(ada: User) -> None:
    first, second = (set_target(ada, " https://example.com/new ") for _ in range(2))
    stored = WebhookTarget.objects.get()
    assert first != second
    assert second not in stored.secret
    waiting(ada)
    assert take()[0].secret == second
    assert encrypt_all_again(WebhookTarget, "secret") == (1, 0)
    assert WebhookTarget.objects.get().secret != stored.secret


def test_finished_deliveries_are_dropped_and_waiting_ones_stay(ada: User, configure: Callable[..., None]) -> None:
    waiting(ada)
    record_result(take()[0], SENT, now=NOW)
    waiting(ada)
    later = NOW + timedelta(days=15)
    assert drop_deliveries(NOW + timedelta(days=13), 100) == 0
    assert drop_deliveries(later, 100) == 1
    assert Delivery.objects.get().next_try_at is not None
    configure(DELIVERY_RETENTION, 0)
    record_result(take()[0], SENT, now=NOW)
    assert drop_deliveries(later, 100) == 0
