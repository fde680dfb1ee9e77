"""The chain of the audit log: whatever is changed, removed or numbered anew is found."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, strategies as st

from grid.audit.chain import START, ChainBroken, Link, SealedEntry, follow, hash_of

NOW = datetime(2026, 2, 2, 10, tzinfo=UTC)
texts = st.text(max_size=8)
values = st.none() | st.booleans() | st.integers() | texts | st.lists(texts, max_size=2)
changes = st.dictionaries(texts, st.lists(values, min_size=2, max_size=2), max_size=2)
contents = st.lists(st.tuples(texts, texts, changes), min_size=2, max_size=6)


def chain(contents: list[tuple[str, str, dict[str, Any]]]) -> list[SealedEntry]:
    sealed, link = [], START
    for place, (actor, about, change) in enumerate(contents):
        entry = SealedEntry(
            number=link.number + 1,
            id=place * 3 + 7,
            at=NOW + timedelta(seconds=place),
            sealed_at=NOW + timedelta(minutes=1),
            actor_name=actor,
            action="changed",
            object_type="project",
            object_id=about,
            object_name=about,
            changes=change,
        )
        entry = replace(entry, hash=hash_of(link.hash, entry))
        sealed.append(entry)
        link = Link(entry.number, entry.hash)
    return sealed


def broken(entries: list[SealedEntry]) -> str:
    with pytest.raises(ChainBroken) as raised:
        follow(START, entries)
    return str(raised.value)


@given(contents)
def test_an_untouched_chain_holds_from_each_of_its_links(drawn: list[Any]) -> None:
    entries = chain(drawn)
    last = Link(entries[-1].number, entries[-1].hash)
    for place, entry in enumerate(entries):
        assert follow(Link(entry.number, entry.hash), entries[place + 1 :]) == last
    assert follow(START, entries) == last


_CHANGED: dict[str, Any] = {
    "id": lambda value: value + 1,
    "at": lambda value: value + timedelta(microseconds=1),
    "sealed_at": lambda value: value - timedelta(microseconds=1),
    "changes": lambda value: {**value, "added": [None, 1]},
    "hash": lambda value: value[::-1] if value != value[::-1] else "0" * 64,
    **dict.fromkeys(("actor_name", "action", "object_type", "object_id", "object_name"), lambda value: value + "x"),
}


@given(contents, st.data())
def test_any_change_of_an_entry_is_found_and_named(drawn: list[Any], data: st.DataObject) -> None:
    entries = chain(drawn)
    place = data.draw(st.integers(0, len(entries) - 1))
    name = data.draw(st.sampled_from(sorted(_CHANGED)))
    entries[place] = replace(entries[place], **{name: _CHANGED[name](getattr(entries[place], name))})
    assert broken(entries).startswith(f"Entry {place + 1} is not as it was sealed")


@given(contents, st.data())
def test_removed_entry_is_detected_unless_it_was_last(drawn: list[Any], data: st.DataObject) -> None:
    entries = chain(drawn)
    place = data.draw(st.integers(0, len(entries) - 2))
    del entries[place]
    assert broken(entries).startswith(f"Entry {place + 1} is missing: after {place} comes {place + 2}.")
    # Renumbered, so that nothing seems to be missing.
    renumbered = [replace(entry, number=number) for number, entry in enumerate(entries, 1)]
    assert broken(renumbered).startswith(f"Entry {place + 1} is not as it was sealed")


def test_time_zone_and_key_order_do_not_change_hash() -> None:
    (entry, _) = chain([("ada", "x", {"a": [1, 2], "b": [3, 4]}), ("ada", "y", {})])
    elsewhere = replace(entry, at=entry.at.astimezone(timezone(timedelta(hours=2))), changes={"b": [3, 4], "a": [1, 2]})
    assert hash_of(START.hash, elsewhere) == entry.hash


@given(texts)
def test_only_a_link_is_read_as_one(text: str) -> None:
    link = Link(12, "ab" * 32)
    assert Link.parse(f" {link}\n") == link
    for wrong in (text, f"{text}:{link.hash}x", f"12:{text}", f"-1:{link.hash}", f"²:{link.hash}"):
        assert Link.parse(wrong) is None
