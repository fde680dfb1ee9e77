"""What a controller has asked for is waited for until the mirror shows it, and not longer."""

from grid.sandbox.client import Object
from grid.sandbox.controllers.owned import Expectations
from tests.sandbox.support import FastClock


def pod(uid: str, **metadata: str) -> Object:
    return {"metadata": {"name": uid, "namespace": "ns", "uid": uid, **metadata}}


def test_a_created_pod_is_waited_for_until_the_mirror_shows_it() -> None:
    expectations = Expectations(FastClock())
    expectations.created("owner", "a")
    assert not expectations.settle("owner", [])
    assert expectations.settle("owner", [pod("a")])
    assert expectations.settle("owner", [])


def test_a_created_pod_that_came_and_went_unseen_is_not_waited_for() -> None:
    expectations = Expectations(FastClock())
    expectations.created("owner", "a")
    expectations.left("a")
    assert expectations.settle("owner", [])


def test_a_pod_that_left_before_its_creation_was_answered_is_not_waited_for() -> None:
    expectations = Expectations(FastClock())
    expectations.left("a")
    expectations.created("owner", "a")
    assert expectations.settle("owner", [])


def test_a_deleted_pod_is_waited_for_until_it_ends_or_goes() -> None:
    expectations = Expectations(FastClock())
    expectations.deleted("owner", "a")
    assert not expectations.settle("owner", [pod("a")])
    assert expectations.settle("owner", [pod("a", deletionTimestamp="2026-01-01T00:00:00Z")])
