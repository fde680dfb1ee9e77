"""What the controller finds in the logs that it keeps, by the built-in entries and the admins' own."""

from collections.abc import Sequence
from typing import Any

import pytest

from grid.core import regexes
from grid.diagnosis import logfindings
from grid.diagnosis.logfindings import BUILT_IN, LogTable
from grid.logs import knowledge
from grid.models import Execution, KnowledgeEntry, LogOccurrence
from tests.controller.world import World, fresh, in_world, states_of, to_running
from tests.support.builders import NAMESPACE
from tests.support.shop import OWNER, Shop

NO_MODULE = "ModuleNotFoundError: No module named 'polars'"
LICENCE = {"pattern": r"LIC-(\d+)", "meaning": "The licences of product {} are in use.", "cure": "Wait for one."}


def own_entry(id: str = "licence", **changes: Any) -> KnowledgeEntry:
    return KnowledgeEntry.objects.create(id=id, **(LICENCE | changes))


async def a_job_that_ends(shop: Shop, lines: Sequence[str], exit_code: int = 1) -> Execution:
    """One whose log has these lines when its program ends."""
    world = World()
    execution = shop.launch(kind="job", environment=shop.job)
    controller = world.controller()
    await to_running(world, controller)
    world.cluster.set_log(execution.object_name, list(lines), namespace=NAMESPACE, container="run")
    world.finish(world.pod_of(execution), exit_code, "Completed" if exit_code == 0 else "Error")
    await world.step(controller)
    world.behave()
    await world.step(controller)
    return fresh(execution)


def occurrences(execution: Execution) -> list[tuple[str, str, str]]:
    return list(LogOccurrence.objects.filter(log=execution.pk).values_list("entry", "meaning", "line"))


@in_world
async def test_failed_job_shows_and_keeps_its_log_finding(shop: Shop) -> None:
    failed = await a_job_that_ends(shop, ["epoch 1", NO_MODULE, *["bye"] * 100])
    assert (failed.state, failed.reason) == ("failed", "exit_code")
    assert failed.words(OWNER) == (
        "The program ended with an error: exit code 1. Python module polars is not installed. "
        "Install it with pip, or choose an environment that has it."
    )
    assert occurrences(failed) == [("grid.python-module", "Python module polars is not installed.", NO_MODULE)]
    assert LogOccurrence.objects.get().at == failed.log.at


@in_world
async def test_admin_entry_explains_an_otherwise_unknown_line(shop: Shop) -> None:
    own_entry()
    failed = await a_job_that_ends(shop, ["fatal: LIC-17"])
    assert failed.words(OWNER).endswith("exit code 1. The licences of product 17 are in use. Wait for one.")
    assert occurrences(failed) == [("licence", "The licences of product 17 are in use.", "fatal: LIC-17")]


@in_world
async def test_clearer_exit_code_message_stays_and_finding_is_kept(shop: Shop) -> None:
    failed = await a_job_that_ends(shop, ["Connection refused", "sh: 1: trian: not found"], exit_code=127)
    assert "exit code 127, the command trian was not found." in failed.words(OWNER)
    assert "refused" not in failed.words(OWNER)
    assert [entry for entry, *_ in occurrences(failed)] == ["grid.refused"]


@in_world
async def test_fault_in_search_keeps_no_execution_from_ending(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(table: LogTable, text: str) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(LogTable, "findings", fail)
    logfindings._found.cache_clear()  # another test may have asked about the same log
    failed = await a_job_that_ends(shop, [NO_MODULE])
    assert states_of(failed)[-1] == "failed"
    assert failed.log.text == f"{NO_MODULE}\n"
    assert occurrences(failed) == []
    assert "a log was not searched" in caplog.text


@pytest.mark.django_db
def test_broken_stored_entry_leaves_the_others_in_force() -> None:
    own_entry("broken", pattern="(")
    own_entry()
    assert [entry.key for entry in knowledge.entries_in_force()] == ["licence", *(entry.key for entry in BUILT_IN)]


@pytest.mark.django_db
def test_own_entries_too_slow_together_are_refused_and_dropped() -> None:
    large = "x[a-y]{180}"
    fitting = regexes.LARGEST_TOGETHER // regexes.size_of(large + "0z")
    for number in range(fitting):
        KnowledgeEntry.objects.create(
            id=f"own-{number:02}", pattern=f"{large}{number}z", meaning="Large.", cure="None."
        )
    assert not knowledge.has_room_for(large + "z", key="")
    assert knowledge.has_room_for(large + "z", key="own-00")
    KnowledgeEntry.objects.create(id="own-more", pattern=large + "z", meaning="Large.", cure="None.")
    searched = [entry.key for entry in knowledge.entries_in_force() if entry.key.startswith("own-")]
    assert searched == [f"own-{number:02}" for number in range(fitting)]
