"""The store keeps what it said it had stored, and knows how far back it can look."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from grid.sandbox.apiserver.store import ObjectStore

ROOT = Path(__file__).parents[3]
_CHANGES = st.lists(st.tuples(st.sampled_from("abcd"), st.booleans()), max_size=30)
_WRITER = """
import sys
from pathlib import Path
from grid.sandbox.apiserver.store import ObjectStore
store = ObjectStore(Path(sys.argv[1]))
number = 0
while True:
    number += 1
    store.put("pods", f"default/p{number}", {"metadata": {"name": f"p{number}"}})
    if number % 3 == 0:
        store.remove("pods", f"default/p{number - 1}")
    print(number, store.version, flush=True)
"""


def obj(name: str, **fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, **fields}


def test_stored_objects_survive_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "cluster.sqlite3"
    writer = subprocess.Popen([sys.executable, "-c", _WRITER, str(path)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    written = [writer.stdout.readline().split() for _ in range(200)]
    os.kill(writer.pid, signal.SIGKILL)
    rest, _ = writer.communicate()
    written += [line.split() for line in rest.splitlines() if len(line.split()) == 2]
    number, version = (int(each) for each in written[-1])
    store = ObjectStore(path)
    assert store.version >= version
    there = {each for each in range(1, number + 1) if store.get("pods", f"default/p{each}") is not None}
    removed = set(range(2, number, 3))  # each by the step after its own
    assert there | {number} == set(range(1, number + 1)) - removed | {number}
    store.close()


def test_versions_grow_over_restarts_also_after_a_removal(tmp_path: Path) -> None:
    path = tmp_path / "cluster.sqlite3"
    store = ObjectStore(path)
    store.put("pods", "a", obj("a"))
    store.remove("pods", "a")
    last = store.version
    store.close()
    again = ObjectStore(path)
    assert again.version == last
    assert again.put("pods", "b", obj("b")).version == last + 1
    assert again.floor("pods") == last, "what was before the start is forgotten"
    again.close()


@given(_CHANGES, st.integers(0, 30))
def test_an_earlier_state_can_be_shown_as_it_was(changes: list[tuple[str, bool]], moment: int) -> None:
    store = ObjectStore()
    version, expected = store.version, dict[str, Any]()
    for number, (key, present) in enumerate(changes):
        if number == moment:
            version, expected = store.version, {each.key: each.obj for each in store.records("pods")}
        if present:
            store.put("pods", key, obj(key, number=number))
        elif store.get("pods", key) is not None:
            store.remove("pods", key)
    if moment >= len(changes):
        version, expected = store.version, {each.key: each.obj for each in store.records("pods")}
    assert {each.key: each.obj for each in store.records_at("pods", version)} == expected
    store.close()


def test_history_is_limited_and_knows_its_floor() -> None:
    store = ObjectStore(history=3)
    start = store.version
    for number in range(5):
        store.put("pods", "a", obj("a", number=number))
    assert store.floor("pods") == start + 2
    assert [change.version for change in store.changes_since("pods", start + 2)] == [start + 3, start + 4, start + 5]
    assert not store.can_show("pods", start + 1)
    assert store.floor("nodes") == start, "a resource without changes misses none"


def test_old_states_are_compacted_after_their_time() -> None:
    now = [0.0]
    store = ObjectStore(snapshot_seconds=300, clock=lambda: now[0])
    version = store.put("pods", "a", obj("a")).version
    store.put("pods", "a", obj("a", b=1))
    store.compact()
    now[0] = 299.0
    store.compact()
    assert store.can_show("pods", version)
    now[0] = 301.0
    store.compact()
    assert not store.can_show("pods", version)
    assert store.changes_since("pods", version), "watches may still go on from there"


def test_a_failed_write_changes_nothing() -> None:
    store = ObjectStore()
    version = store.version
    with pytest.raises(TypeError):
        store.put("pods", "a", obj("a", bad=object()))
    assert store.version == version
    assert store.get("pods", "a") is None


def test_unkept_objects_vanish_and_versions_are_never_reused(tmp_path: Path) -> None:
    path = tmp_path / "cluster.sqlite3"
    store = ObjectStore(path)
    store.put("pods", "default/kept", obj("kept"))
    store.put("pods", "default/played", obj("played"), is_kept=False)
    store.put("pods", "default/played", obj("played", changed=True))
    last = store.version
    store.close()
    again = ObjectStore(path)
    assert [record.key for record in again.records("pods")] == ["default/kept"]
    assert again.put("pods", "default/new", obj("new")).version > last
    again.close()


def test_only_latest_objects_stay_decoded_and_all_are_readable() -> None:
    store = ObjectStore(most_decoded=2)
    for name in "abc":
        store.put("pods", f"default/{name}", {"metadata": {"name": name, "labels": {"is": name}}})
    records = list(store.records("pods"))
    assert [record.decoded is not None for record in records] == [False, True, True]
    assert [record.labels for record in records] == [{"is": name} for name in "abc"]
    assert [record.obj["metadata"]["name"] for record in records] == ["a", "b", "c"]
    assert sum(record.decoded is not None for record in records) == 2
