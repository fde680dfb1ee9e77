"""What a controller has asked for is waited for until the mirror shows it, and not longer."""

from grid.sandbox.client import Object
from grid.sandbox.controllers.owned import Expectations
from tests.sandbox.support import FastClock


def pod(uid: str, **metadata: str) -> Object:
    return {"metadata": {"name": uid, "namespace": "ns", "uid": uid, **metadata}}


def test_created_pod_is_expected_until_mirror_shows_it() -> None:
    expectations = Expectations(FastClock())
    expectations.created("owner", "a")
    assert not expectations.settle("owner", [])
    assert expectations.settle("owner", [pod("a")])
    assert expectations.settle("owner", [])


def test_created_pod_that_vanished_unseen_is_not_expected() -> None:
    expectations = Expectations(FastClock())
    expectations.created("owner", "a")
    expectations.left("a")
    assert expectations.settle("owner", [])


def test_pod_gone_before_creation_answer_is_not_expected() -> None:
    expectations = Expectations(FastClock())
    expectations.left("a")
    expectations.created("owner", "a")
    assert expectations.settle("owner", [])


def test_deleted_pod_is_expected_until_it_ends() -> None:
    expectations = Expectations(FastClock())
    expectations.deleted("owner", "a")
    assert not expectations.settle("owner", [pod("a")])
    assert expectations.settle("owner", [pod("a", deletionTimestamp="2026-01-01T00:00:00Z")])
