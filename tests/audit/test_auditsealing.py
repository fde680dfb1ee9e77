"""The chain of the audit log: whatever is changed, removed or numbered anew is found; sealed in batches, verified, cut at its start."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from io import StringIO
from pathlib import Path
from threading import Barrier, Thread
from typing import Any, cast

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.core.management import CommandError, call_command
from django.db import connection
from hypothesis import given, strategies as st

from grid.audit import sealing as auditsealing
from grid.audit.chain import START, ChainBroken, Link, SealedEntry, follow, hash_of
from grid.audit.sealing import drop_sealed, head, periodic, seal, unsealed_count, verify
from grid.models import AuditChain, AuditEntry
from tests.support.database import database_on_file

NOW = datetime(2026, 2, 2, 10, tzinfo=UTC)
texts = st.text(max_size=8)
values = st.none() | st.booleans() | st.integers() | texts | st.lists(texts, max_size=2)
changes = st.dictionaries(texts, st.lists(values, min_size=2, max_size=2), max_size=2)
contents = st.lists(st.tuples(texts, texts, changes), min_size=2, max_size=6)


def write(count: int, **about: Any) -> list[AuditEntry]:
    fields = {"actor_name": "ada", "action": "changed", "object_type": "project", "object_id": "churn", "at": NOW}
    changes = {"cores": ["1", 1.0], "people": [["é"], None]}
    return [AuditEntry.objects.create(**fields, changes=changes, **about) for _ in range(count)]


def sealed(count: int) -> list[AuditEntry]:
    rows = write(count)
    while seal(NOW, 2):
        pass
    return rows


def verified(*links: Link) -> str:
    out = StringIO()
    call_command("verify_audit", link=[str(link) for link in links], stdout=out)
    return out.getvalue()


def broken(*links: Link) -> str:
    with pytest.raises(CommandError) as raised:
        verified(*links)
    assert raised.value.returncode == 1
    return str(raised.value)


@pytest.mark.django_db
def test_entries_are_sealed_by_id_and_late_ones_afterwards() -> None:
    first, late, second = write(3)
    AuditEntry.objects.filter(pk=late.pk).delete()  # its transaction has not ended
    assert (seal(NOW), seal(NOW), unsealed_count()) == (2, 0, 0)
    late.save(force_insert=True)
    assert unsealed_count() == 1
    assert "Not sealed yet: 1 entry." in verified()
    assert seal(NOW) == 1
    numbers = dict(AuditEntry.objects.values_list("pk", "number"))
    assert numbers == {first.pk: 1, second.pk: 2, late.pk: 3}
    assert verified().startswith("3 sealed entries verified, none changed or missing.")


@pytest.mark.django_db
def test_a_sealing_that_is_killed_half_way_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    sealed(3)
    write(3)
    before = head()

    def killed(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    for half in ("filter", "select_for_update"):
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(AuditChain.objects, half, killed)
            seal(NOW)
    assert (head(), unsealed_count()) == (before, 3)
    assert seal(NOW) == 3
    assert verify().count == 6


@pytest.mark.django_db(transaction=True)
def test_two_leaders_and_writers_at_once_make_one_chain(tmp_path: Path) -> None:
    with database_on_file(tmp_path / "grid.sqlite3"):
        write(20)
        barrier, failures = Barrier(4), list[BaseException]()

        def at_once(work: Callable[[], object]) -> None:
            barrier.wait(timeout=30)
            try:
                work()
            except BaseException as error:
                failures.append(error)
            finally:
                connection.close()

        def lead() -> None:
            while seal(NOW, 3):
                pass

        threads = [Thread(target=at_once, args=(work,)) for work in (lead, lead, lambda: write(5), lambda: write(5))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=60)
        lead()
        assert failures == []
        assert (verify().count, unsealed_count()) == (30, 0)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("tamper", "sentence"),
    [
        (lambda rows: rows[4].delete(), "Entry 5 is missing: the chain's head is at 5."),
        (lambda rows: rows[0].delete(), "Entry 1 is missing: after 0 comes 2."),
        (
            lambda rows: AuditEntry.objects.filter(pk=rows[3].pk).update(actor_name="eve"),
            "Entry 4 is not as it was sealed",
        ),
        (lambda rows: AuditEntry.objects.filter(pk=rows[1].pk).update(sealed_at=None), "no time of sealing"),
        (lambda rows: AuditChain.objects.update(head_hash="0" * 64), "Entry 5 is not the one that the chain's head"),
        (lambda rows: AuditChain.objects.update(anchor_number=2), "entries up to 2 were deleted by retention"),
    ],
)
def test_the_command_names_what_is_wrong(
    tamper: Callable[[list[AuditEntry]], object], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auditsealing, "VERIFIED_AT_ONCE", 2)
    rows = sealed(5)
    assert "5 sealed entries" in verified()
    tamper(rows)
    assert sentence in broken()


@pytest.mark.django_db
def test_rewritten_chain_is_detected_by_a_link_kept_elsewhere() -> None:
    rows = sealed(3)
    kept = head()
    assert "none changed" in verified(kept)
    AuditEntry.objects.filter(pk=rows[0].pk).update(actor_name="eve", number=None)
    AuditEntry.objects.update(number=None)
    AuditChain.objects.all().delete()
    while seal(NOW):
        pass
    assert "none changed" in verified()
    assert "Entry 3 is not the one whose link you gave" in broken(kept)
    AuditEntry.objects.filter(number=3).delete()
    AuditChain.objects.update(head_number=2, head_hash=AuditEntry.objects.get(number=2).hash)
    assert "none changed" in verified()
    assert "Entry 3 is missing" in broken(kept)
    with pytest.raises(CommandError, match="'3:x' is no link"):
        call_command("verify_audit", link=["3:x"])


@pytest.mark.django_db
def test_retention_leaves_an_anchor_for_the_chain() -> None:
    write(2, object_name="old")
    AuditEntry.objects.update(at=NOW - timedelta(days=9))
    sealed(2)
    write(1)
    kept, limit = Link(1, AuditEntry.objects.get(number=1).hash), NOW - timedelta(days=1)
    assert [drop_sealed(limit, 1) for _ in range(3)] == [1, 1, 0]
    output = verified(kept)
    assert output.startswith("2 sealed entries verified")
    assert "Retention has deleted those up to 2" in output
    assert f"Not compared, because retention has deleted that entry: {kept}" in output
    assert drop_sealed(NOW + timedelta(days=1), 9) == 2
    assert verified().startswith("0 sealed entries verified")
    assert seal(NOW) == 1
    assert verified(head()).startswith("1 sealed entry verified")


@pytest.mark.django_db
def test_retention_may_overtake_who_verifies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auditsealing, "VERIFIED_AT_ONCE", 2)
    sealed(6)
    ends = auditsealing._ends

    def overtaken() -> tuple[Link, Link]:
        links = ends()
        drop_sealed(NOW + timedelta(days=1), 1)
        return links

    monkeypatch.setattr(auditsealing, "_ends", overtaken)
    assert verify().head.number == 6


@pytest.mark.django_db
def test_controller_seals_in_small_batches_and_logs_the_head(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("grid.audit.sealing.PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(auditsealing.seal, "__defaults__", (2,))
    write(5)

    async def directly(work: Callable[..., Any], /, *args: Any) -> Any:
        return await sync_to_async(work)(*args)

    seal_once = async_to_sync(periodic(cast(Any, directly), lambda: NOW).run_once)
    with caplog.at_level("INFO"):
        seal_once()
        seal_once()
    assert [record.getMessage() for record in caplog.records] == [f"audit log sealed entries=5 link={head()}"]


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


def broken_at(entries: list[SealedEntry]) -> str:
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
    assert broken_at(entries).startswith(f"Entry {place + 1} is not as it was sealed")


@given(contents, st.data())
def test_removed_entry_is_detected_unless_it_was_last(drawn: list[Any], data: st.DataObject) -> None:
    entries = chain(drawn)
    place = data.draw(st.integers(0, len(entries) - 2))
    del entries[place]
    assert broken_at(entries).startswith(f"Entry {place + 1} is missing: after {place} comes {place + 2}.")
    # Renumbered, so that nothing seems to be missing.
    renumbered = [replace(entry, number=number) for number, entry in enumerate(entries, 1)]
    assert broken_at(renumbered).startswith(f"Entry {place + 1} is not as it was sealed")


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
