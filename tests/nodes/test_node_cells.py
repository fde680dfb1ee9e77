"""Nodes as cells: their steps and states, and that a change sends again only the chunk in which a cell looks different."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, strategies as st

from dashboard.nodes.viewmodels.nodes import NodeSums, node_sums
from dashboard.nodes.viewmodels.overview import CELLS_PER_CHUNK, CellMap, CellMaps, NodeCell, cell_of
from dashboard.shell.viewmodels.live import Fragment
from grid.core.labels import TO_BE_DELETED_TAINT
from grid.kube.objects import Node, Pod
from tests.support import builders
from tests.support.builders import MOMENT, decode, room_of


def sums(name: str = "worker-1", *, cpu: str = "", memory: str = "0", minute: int = 0, **fields: Any) -> NodeSums:
    """A node of 4 cores and 16 GiB, with one pod when `cpu` is given."""
    node = decode(builders.node(name, created=MOMENT + timedelta(minutes=minute), **fields), Node)
    pod = builders.pod("p", node=name, phase="Running", requests={"cpu": cpu, "memory": memory})
    return node_sums(node, room_of([decode(pod, Pod)] if cpu else []).requested(name), None)


def chunks(fragments: list[Fragment]) -> list[tuple[NodeCell, ...]]:
    contexts = [fragment.context for fragment in fragments]
    assert all(isinstance(context, tuple) for context in contexts)
    return contexts  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("cpu", "memory", "step"),
    [("", "0", 0), ("800m", "0", 0), ("900m", "0", 1), ("100m", "8Gi", 2), ("3200m", "0", 3), ("3300m", "0", 4)],
)
def test_a_cell_shows_the_largest_requested_share_in_steps(cpu: str, memory: str, step: int) -> None:
    assert cell_of(sums(cpu=cpu, memory=memory)).step == step


def lost() -> list[Any]:
    return [builders.condition("Ready", "Unknown")]


@pytest.mark.parametrize(
    ("state", "words", "fields"),
    [
        ("", "ready", {}),
        ("closed", "cordoned", {"unschedulable": True}),
        ("unready", "not ready", {"ready": False}),
        ("problem", "lost", {"conditions": lost()}),
        ("leaving", "being removed", {"taints": [{"key": TO_BE_DELETED_TAINT, "effect": "NoSchedule"}]}),
    ],
)
def test_a_cell_shows_the_state_of_its_node(state: str, words: str, fields: dict[str, Any]) -> None:
    cell = cell_of(sums(**fields))
    assert cell.state == state
    assert cell.title == f"worker-1: {words}; 4 cores, 16 GiB; up to 20 % requested"


def test_a_change_within_a_step_makes_no_chunk_anew() -> None:
    cells = CellMap("default")
    cells.put(sums(cpu="1"))
    before = cells.fragments()
    cells.put(sums(cpu="1100m"))
    assert cells.fragments()[0] is before[0]


def test_changed_node_rebuilds_only_its_chunk() -> None:
    cells = CellMap("default")
    for number in range(4 * CELLS_PER_CHUNK):
        cells.put(sums(f"n-{number:03}", minute=number))
    before = cells.fragments()
    cells.put(sums("n-000", cpu="4"))
    after = cells.fragments()
    assert [old is new for old, new in zip(before, after, strict=True)] == [False, *[True] * (len(before) - 1)]
    assert len(before) == 4


OPERATIONS = st.lists(
    st.tuples(st.integers(0, 60), st.sampled_from(["a", "b", ""]), st.integers(0, 3), st.booleans()), max_size=200
)


@given(OPERATIONS)
def test_cells_are_current_nodes_of_pools_by_age(operations: list[tuple[int, str, int, bool]]) -> None:
    maps, present = CellMaps(), dict[str, NodeSums]()
    for number, pool, minute, is_there in operations:
        name = f"n-{number}"
        new = sums(name, pool=pool, minute=minute, unschedulable=number % 3 == 0) if is_there else None
        maps.replace(present.pop(name, None), new)
        if new is not None:
            present[name] = new
    for pool in ("a", "b", ""):
        inside = [node for node in present.values() if node.pool == pool]
        fragments = maps.of(pool).fragments()
        ordered = sorted(inside, key=lambda node: (node.node.metadata.creation_timestamp, node.node.metadata.name))
        assert [cell.name for chunk in chunks(fragments) for cell in chunk] == [
            node.node.metadata.name for node in ordered
        ]
        assert len({fragment.id for fragment in fragments}) == len(fragments)
        assert all(0 < len(chunk) <= CELLS_PER_CHUNK for chunk in chunks(fragments))
        assert maps.of(pool).states["closed"] == sum(node.node.spec.unschedulable for node in inside)
