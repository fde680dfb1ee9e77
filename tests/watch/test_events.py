"""The event store: whose events, in which order, and what goes first when there are too many."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from grid.kube.objects import Event
from grid.watch.events import EventStore
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


def test_events_of_an_earlier_object_of_the_same_name_are_told_apart_by_uid() -> None:
    store = EventStore()
    store.apply(an_event("old", about=pod("p", uid="1")))
    store.apply(an_event("new", about=pod("p", uid="2")))
    assert names(store.about(kind="Pod", name="p", namespace="compute-grid", uid="2")) == ["new"]
    assert len(store.about(kind="Pod", name="p", namespace="compute-grid")) == 2


def test_a_kubelets_events_about_its_node_carry_the_name_for_a_uid_and_are_found() -> None:
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


def test_one_noisy_object_keeps_its_latest_events_and_its_warnings() -> None:
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


def test_an_old_event_that_does_not_fit_is_no_change() -> None:
    store = EventStore(per_object=1)
    store.apply(an_event("new", minute=5))
    assert not store.apply(an_event("old", minute=1))
    assert [one.metadata.name for one in store.values()] == ["new"]


@given(st.lists(st.tuples(st.integers(0, 30), st.booleans(), st.integers(0, 5)), max_size=80))
def test_the_caps_hold_whatever_comes(incoming: list[tuple[int, bool, int]]) -> None:
    store = EventStore(cap=20, per_object=6)
    for number, (minute, warns, of) in enumerate(incoming):
        store.apply(an_event(f"e{number}", minute=minute, kind="Warning" if warns else "Normal", about=pod(f"p{of}")))
    assert len(store) <= 20
    assert all(len(store.about(kind="Pod", name=f"p{of}", namespace="compute-grid")) <= 6 for of in range(6))
