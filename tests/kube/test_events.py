"""The event store: whose events, in which order, and what goes first when there are too many."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from hypothesis import given, strategies as st

from grid.kube.events import EventStore, topic_about
from grid.kube.objects import Event
from tests.support.builders import MOMENT, decode, event, node, pod

POD = pod("p")


def an_event(
    name: str, *, minute: int = 0, kind: str = "Normal", about: object = POD, component: str = "kubelet"
) -> Event:
    at = MOMENT + timedelta(minutes=minute)
    assert isinstance(about, dict)
    return decode(event(name, about=about, at=at, kind=kind, component=component), Event)


def names(events: Iterable[Event]) -> list[str]:
    return [event.metadata.name for event in events]


def about_p(store: EventStore, **more: str) -> list[str]:
    return names(store.about(kind="Pod", name="p", namespace="compute-grid", **more))


def stored(*events: Event, **options: Any) -> EventStore:
    store = EventStore(**options)
    for new in events:
        store.apply(new)
    return store


def test_events_of_an_object_come_oldest_first() -> None:
    store = stored(an_event("late", minute=9), an_event("early"), an_event("other", about=pod("q")))
    assert about_p(store) == ["early", "late"]


def test_event_is_published_to_the_topic_of_its_object() -> None:
    topics = EventStore().topics(None, an_event("one"))
    assert topic_about("Pod", "p", "compute-grid") in topics
    assert topic_about("Pod", "q", "compute-grid") not in topics


def test_events_of_an_earlier_namesake_differ_by_uid() -> None:
    events = [an_event(name, about=pod("p", uid=uid)) for name, uid in (("old", "1"), ("new", "2"), ("unsaid", ""))]
    store = stored(*events)
    assert sorted(about_p(store, uid="2")) == ["new", "unsaid"]
    assert len(about_p(store)) == 3


def test_kubelet_events_naming_their_node_as_uid_are_found() -> None:
    kubelet = an_event("kubelet", about=node("n1", uid="n1"), minute=1)
    store = stored(an_event("controller", about=node("n1", uid="real-uid")), kubelet)
    assert names(store.about(kind="Node", name="n1", uid="real-uid")) == ["controller", "kubelet"]


def test_noisy_object_keeps_its_latest_events_and_warnings() -> None:
    noise = [an_event(f"normal-{minute}", minute=minute) for minute in range(10)]
    store = stored(an_event("warning", kind="Warning"), an_event("quiet", about=pod("q")), *noise, per_object=3)
    assert about_p(store) == ["warning", "normal-8", "normal-9"]
    assert len(store) == 4


def test_too_many_in_all_drops_normal_ones_first() -> None:
    warnings = [an_event(f"w{number}", kind="Warning", about=pod(f"p{number}")) for number in range(10)]
    normal = [an_event(f"n{number}", about=pod(f"q{number}"), minute=number) for number in range(100)]
    store = stored(*warnings, *normal, cap=20)
    kept = {event.metadata.name for event in store.values()}
    assert {f"w{number}" for number in range(10)} <= kept
    assert "n99" in kept
    assert "n0" not in kept
    assert len(store) <= 20


def test_old_event_that_does_not_fit_changes_nothing() -> None:
    store = stored(an_event("new", minute=5), per_object=1)
    assert not store.apply(an_event("old", minute=1))
    assert names(store.values()) == ["new"]


def test_full_store_frees_a_tenth_at_once() -> None:
    store = EventStore(cap=20)
    sizes = []
    for number in range(22):
        store.apply(an_event(f"e{number:02}", about=pod(f"p{number}"), minute=number))
        sizes.append(len(store))
    assert sizes[18:] == [19, 20, 18, 19]
    assert min(names(store.values())) == "e03"


def test_without_being_told_otherwise_an_object_keeps_fifty() -> None:
    store = stored(*(an_event(f"e{number:02}", minute=number) for number in range(60)))
    assert about_p(store) == [f"e{n}" for n in range(10, 60)]


def test_an_event_without_any_time_is_the_oldest() -> None:
    undated = event("undated", about=POD)
    for field in ("firstTimestamp", "lastTimestamp", "eventTime"):
        undated.pop(field, None)
    undated["metadata"].pop("creationTimestamp", None)
    assert about_p(stored(an_event("dated"), decode(undated, Event))) == ["undated", "dated"]


def test_an_event_that_comes_twice_is_one_change() -> None:
    store = EventStore()
    assert [store.apply(an_event("a")) for _ in range(2)] == [True, False]
    assert store.version == 1


def test_event_without_an_object_is_about_none() -> None:
    nameless = event("nameless", about={"kind": "Pod", "metadata": {"name": ""}})
    store = stored(decode(event("nothing"), Event), decode(nameless, Event))
    assert store.about(kind="Pod", name="") == []
    assert store.by("object", "//") == ()
    assert len(store) == 2


def test_namesakes_differ_by_kind_and_namespace() -> None:
    elsewhere = an_event("elsewhere", about=pod("p", namespace="other"))
    store = stored(an_event("here", about=pod("p")), elsewhere, an_event("node", about=node("p")))
    assert about_p(store) == ["here"]
    assert names(store.about(kind="Pod", name="p", namespace="other")) == ["elsewhere"]
    assert names(store.about(kind="Node", name="p")) == ["node"]


def test_store_has_indexes_of_the_caller_and_is_stale_after_silence() -> None:
    store = stored(an_event("a"), indexes={"reason": lambda event: event.reason})
    assert names(store.by("reason", "Scheduled")) == ["a"]
    assert names(store.from_component("kubelet")) == ["a"]
    store.mark_synced(0)
    assert (store.name, store.freshness(180).error) == ("events", "")
    assert store.freshness(181).error


@given(st.lists(st.tuples(st.integers(0, 30), st.booleans(), st.integers(0, 5)), max_size=80))
def test_the_caps_hold_whatever_comes(incoming: list[tuple[int, bool, int]]) -> None:
    store = EventStore(cap=20, per_object=6)
    for number, (minute, warns, of) in enumerate(incoming):
        store.apply(an_event(f"e{number}", minute=minute, kind="Warning" if warns else "Normal", about=pod(f"p{of}")))
    assert len(store) <= 20
    assert all(len(store.about(kind="Pod", name=f"p{of}", namespace="compute-grid")) <= 6 for of in range(6))
