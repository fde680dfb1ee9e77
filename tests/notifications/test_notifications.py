"""Notifications are written with the change that they tell of: by what the owner chose, once, and not at all when the change is not."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction

from grid.configuration import NOTIFICATION_RETENTION
from grid.controller.retention import drop_notifications
from grid.executions import lifecycle
from grid.executions.lifecycle import Transition
from grid.executions.stopping import request_stop
from grid.models import ConfigRecord, Execution, Notification, NotificationChoice, NotificationEvent, State
from grid.notifications import outbox
from grid.notifications.outbox import event_of
from tests.support.shop import NOW, OWNER, Shop

FAILED = Transition(State.FAILED, "exit_code", "It ended with exit code 1. Look at its log.", level="Warning")
Choose = Callable[..., None]


@pytest.fixture
def choose(shop: Shop) -> Choose:
    def choose(event: str, **channels: bool) -> None:
        all_channels = {"in_page": False, "email": False, "webhook": False} | channels
        NotificationChoice.objects.update_or_create(user=shop.people.owner, event=event, defaults=all_channels)

    return choose


def enter(execution: Execution, change: Transition, **options: Any) -> bool:
    execution.refresh_from_db()
    known: dict[str, Any] = {"revision": execution.revision, "left": execution.state, "now": NOW} | options
    return lifecycle.enter(execution.pk, change, **known)


@pytest.mark.django_db
def test_failure_is_notified_to_owner_with_page_sentence(shop: Shop) -> None:
    execution = shop.launch(title="Train <b>")
    assert enter(execution, FAILED)
    execution.refresh_from_db()
    row = Notification.objects.get()
    assert (row.user, row.event, row.title) == (shop.people.owner, "failed", "Train <b>")
    assert row.sentence == execution.words(OWNER) == FAILED.message
    assert (row.path, row.at, row.read_at) == (f"/executions/{execution.pk}/", NOW, None)


@pytest.mark.django_db(transaction=True)
def test_unwritten_or_undone_change_is_not_notified(shop: Shop) -> None:
    execution = shop.launch()
    assert not enter(execution, FAILED, revision=execution.revision + 7)
    assert not Notification.objects.exists()
    with transaction.atomic():
        assert enter(execution, FAILED)
        assert Notification.objects.exists()
        transaction.set_rollback(True)
    assert not Notification.objects.exists()


@pytest.mark.django_db
def test_start_is_notified_only_to_those_who_chose_it(shop: Shop, choose: Choose) -> None:
    running = Transition(State.RUNNING, "ready", "")
    enter(shop.launch(), running)
    assert not Notification.objects.exists()
    choose("started", in_page=True)
    enter(shop.launch(), running)
    assert Notification.objects.get().sentence == "It is running."


@pytest.mark.django_db
@pytest.mark.parametrize("is_closed", [False, True], ids=["chose none", "closed account"])
def test_owner_without_notifications_gets_none(shop: Shop, choose: Choose, is_closed: bool) -> None:
    execution = shop.launch()
    choose("failed", in_page=is_closed)
    shop.people.owner.is_active = not is_closed
    shop.people.owner.save()
    enter(execution, FAILED)
    assert not Notification.objects.exists()


@pytest.mark.django_db
def test_stop_is_notified_unless_owner_asked_for_it(shop: Shop) -> None:
    request_stop(shop.launch(), by=shop.people.owner.username, now=NOW)
    assert not Notification.objects.exists()
    request_stop(shop.launch(), by="root", now=NOW)
    row = Notification.objects.get()
    assert (row.event, row.sentence) == ("stopped", "Stopped by root before it started.")


def test_stop_of_attached_cluster_is_no_event() -> None:
    assert event_of("stopped", actor="root", owner="ada", is_attached=True) is None
    assert event_of("stopped", actor="root", owner="ada", is_attached=False) is NotificationEvent.STOPPED


@pytest.mark.django_db
def test_notification_survives_its_execution_and_expires_by_age(shop: Shop) -> None:
    execution = shop.launch()
    outbox.record(execution.pk, NotificationEvent.FAILED, "Old.", now=NOW)
    Execution.objects.filter(pk=execution.pk).delete()
    assert Notification.objects.get().execution_id is None
    day = timedelta(days=1)
    assert drop_notifications(NOW + 90 * day, 100) == 0
    ConfigRecord.objects.create(key=NOTIFICATION_RETENTION.key, value="10")
    assert drop_notifications(NOW + 11 * day, 100) == 1
    assert not Notification.objects.exists()
