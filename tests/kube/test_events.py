"""The event store: whose events, in which order, and what goes first when there are too many."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

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


def names(events: object) -> list[str]:
    assert isinstance(events, list)
    return [one.metadata.name for one in events]


def test_events_of_an_object_come_oldest_first() -> None:
    store = EventStore()
    for one in (an_event("late", minute=9), an_event("early"), an_event("other", about=pod("q"))):
        store.apply(one)
    assert names(store.about(kind="Pod", name="p", namespace="compute-grid")) == ["early", "late"]


def test_event_is_published_to_the_topic_of_its_object() -> None:
    topics = EventStore().topics(None, an_event("one"))
    assert topic_about("Pod", "p", "compute-grid") in topics
    assert topic_about("Pod", "q", "compute-grid") not in topics


def test_events_of_an_earlier_namesake_differ_by_uid() -> None:
    store = EventStore()
    store.apply(an_event("old", about=pod("p", uid="1")))
    store.apply(an_event("new", about=pod("p", uid="2")))
    assert names(store.about(kind="Pod", name="p", namespace="compute-grid", uid="2")) == ["new"]
    assert len(store.about(kind="Pod", name="p", namespace="compute-grid")) == 2


def test_kubelet_events_naming_their_node_as_uid_are_found() -> None:
    store = EventStore()
    store.apply(an_event("controller", about=node("n1", uid="real-uid")))
    store.apply(an_event("kubelet", about=node("n1", uid="n1"), minute=1))
    assert names(store.about(kind="Node", name="n1", uid="real-uid")) == ["controller", "kubelet"]


def test_events_are_found_by_the_component_that_reported_them() -> None:
    store = EventStore()
    store.apply(an_event("a", component="cluster-autoscaler", minute=2))
    store.apply(an_event("b", component="cluster-autoscaler", minute=1))
    store.apply(an_event("c"))
    assert names(store.from_component("cluster-autoscaler")) == ["b", "a"]


def test_noisy_object_keeps_its_latest_events_and_warnings() -> None:
    store = EventStore(per_object=3)
    store.apply(an_event("warning", kind="Warning"))
    store.apply(an_event("quiet", about=pod("q")))
    for minute in range(10):
        store.apply(an_event(f"normal-{minute}", minute=minute))
    assert names(store.about(kind="Pod", name="p", namespace="compute-grid")) == ["warning", "normal-8", "normal-9"]
    assert len(store) == 4


def test_too_many_in_all_drops_normal_ones_first() -> None:
    store = EventStore(cap=20)
    for number in range(10):
        store.apply(an_event(f"w{number}", kind="Warning", about=pod(f"p{number}")))
    for number in range(100):
        store.apply(an_event(f"n{number}", about=pod(f"q{number}"), minute=number))
    kept = {one.metadata.name for one in store.values()}
    assert {f"w{number}" for number in range(10)} <= kept
    assert "n99" in kept
    assert "n0" not in kept
    assert len(store) <= 20


def test_old_event_that_does_not_fit_changes_nothing() -> None:
    store = EventStore(per_object=1)
    store.apply(an_event("new", minute=5))
    assert not store.apply(an_event("old", minute=1))
    assert [one.metadata.name for one in store.values()] == ["new"]


def test_full_store_frees_a_tenth_at_once() -> None:
    store = EventStore(cap=20)
    sizes = []
    for number in range(22):
        store.apply(an_event(f"e{number:02}", about=pod(f"p{number}"), minute=number))
        sizes.append(len(store))
    assert sizes[18:] == [19, 20, 18, 19]
    assert sorted(one.metadata.name for one in store.values())[0] == "e03"


def test_without_being_told_otherwise_an_object_keeps_fifty() -> None:
    store = EventStore()
    for number in range(60):
        store.apply(an_event(f"e{number:02}", minute=number))
    assert names(store.about(kind="Pod", name="p", namespace="compute-grid")) == [f"e{n}" for n in range(10, 60)]


def test_an_event_without_any_time_is_the_oldest() -> None:
    store = EventStore()
    undated = event("undated", about=POD)
    for field in ("firstTimestamp", "lastTimestamp", "eventTime"):
        undated.pop(field, None)
    undated["metadata"].pop("creationTimestamp", None)
    for one in (an_event("dated"), decode(undated, Event)):
        store.apply(one)
    assert names(store.about(kind="Pod", name="p", namespace="compute-grid")) == ["undated", "dated"]


def test_event_without_a_uid_may_be_about_any() -> None:
    store = EventStore()
    store.apply(an_event("unsaid", about=pod("p", uid="")))
    assert names(store.about(kind="Pod", name="p", namespace="compute-grid", uid="2")) == ["unsaid"]


def test_an_event_that_comes_twice_is_one_change() -> None:
    store = EventStore()
    assert store.apply(an_event("a"))
    assert not store.apply(an_event("a"))
    assert store.version == 1


def test_event_without_an_object_is_about_none() -> None:
    store = EventStore()
    for one in (event("nothing"), event("nameless", about={"kind": "Pod", "metadata": {"name": ""}})):
        store.apply(decode(one, Event))
    assert store.about(kind="Pod", name="") == []
    assert store.by("object", "//") == ()
    assert len(store) == 2


def test_namesakes_differ_by_kind_and_namespace() -> None:
    store = EventStore()
    store.apply(an_event("here", about=pod("p")))
    store.apply(an_event("elsewhere", about=pod("p", namespace="other")))
    store.apply(an_event("node", about=node("p")))
    assert names(store.about(kind="Pod", name="p", namespace="compute-grid")) == ["here"]
    assert names(store.about(kind="Pod", name="p", namespace="other")) == ["elsewhere"]
    assert names(store.about(kind="Node", name="p")) == ["node"]


def test_store_has_indexes_and_patience_of_the_caller() -> None:
    store = EventStore("own", indexes={"reason": lambda one: one.reason}, silence_limit=5)
    store.apply(an_event("a"))
    assert [one.metadata.name for one in store.by("reason", "Scheduled")] == ["a"]
    assert names(store.from_component("kubelet")) == ["a"]
    store.mark_synced(0)
    assert (store.name, store.freshness(5).error) == ("own", "")
    assert store.freshness(6).error
    patient = EventStore()
    patient.mark_synced(0)
    assert (patient.name, patient.freshness(180).error) == ("events", "")
    assert patient.freshness(181).error


@given(st.lists(st.tuples(st.integers(0, 30), st.booleans(), st.integers(0, 5)), max_size=80))
def test_the_caps_hold_whatever_comes(incoming: list[tuple[int, bool, int]]) -> None:
    store = EventStore(cap=20, per_object=6)
    for number, (minute, warns, of) in enumerate(incoming):
        store.apply(an_event(f"e{number}", minute=minute, kind="Warning" if warns else "Normal", about=pod(f"p{of}")))
    assert len(store) <= 20
    assert all(len(store.about(kind="Pod", name=f"p{of}", namespace="compute-grid")) <= 6 for of in range(6))
