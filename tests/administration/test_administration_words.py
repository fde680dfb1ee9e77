"""Tiers, settings and changes in words."""

from decimal import Decimal
from typing import Any

import pytest

from dashboard.administration.viewmodel import FieldChange, history_line
from dashboard.tiers.viewmodels.tiers import pool_words, tier_words
from dashboard.usage.viewmodels.usage import price_words
from grid.diagnosis.nodeshapes import PoolShapes, ShapeTally
from grid.kube.objects import Metadata, Node, NodeStatus
from grid.models import AuditEntry, HardwareTier


def tier(**columns: Any) -> HardwareTier:
    return HardwareTier(**({"cores": "3500m", "memory": "14Gi", "cost_per_hour": Decimal("0.1900")} | columns))


def test_tier_words_have_units_and_memory_per_core() -> None:
    words = tier_words(tier(gpus=2, shared_memory="2Gi"))
    assert (words.cores, words.memory, words.per_core) == ("3.5 cores", "14 GiB", "4 GiB")
    assert (words.gpus, words.shared_memory, words.price) == ("2 GPUs", "2 GiB", "$0.19 an hour")
    assert words.kinds == ""
    assert tier_words(tier(kinds=["job", "cluster", "dask"])).kinds == "jobs, clusters, Dask clusters"


@pytest.mark.parametrize(
    ("cost", "words"),
    [("0", "free"), ("0.0000", "free"), ("0.4000", "$0.40 an hour"), ("3", "$3.00 an hour"), ("0.0125", "$0.0125 an hour"),
     ("1200", "$1,200.00 an hour")],
)  # fmt: skip
def test_a_price_names_no_currency(cost: str, words: str) -> None:
    assert price_words(Decimal(cost)) == words


@pytest.mark.parametrize(
    ("nodes", "maximum", "words"),
    [
        ([], 2, "no node now, at most 2"),
        ([{"cpu": "8", "memory": "32Gi"}] * 2, 5, "2 nodes, each 8 cores, 32 GiB"),
        ([{"cpu": "8", "memory": "32Gi"}, {"cpu": "4", "memory": "64Gi"}], 5, "2 nodes, the largest 8 cores, 32 GiB"),
        ([{"cpu": "8", "memory": "61Gi", "amd.com/gpu": "2"}], 2, "1 node, 8 cores, 61 GiB, 2 GPUs amd.com/gpu"),
    ],
)
def test_a_pool_is_told_by_its_largest_node(nodes: list[dict[str, str]], maximum: int, words: str) -> None:
    tally = ShapeTally()
    for allocatable in nodes:
        tally.count(Node(metadata=Metadata(name="n"), status=NodeStatus(allocatable=allocatable)), {})
    [pool] = pool_words([PoolShapes("p", tally.shapes(), maximum)])
    assert pool.size == words


@pytest.mark.parametrize(
    ("name", "values", "change"),
    [
        ("memory", ["4Gi", "8Gi"], FieldChange("Memory", "4Gi", "8Gi")),
        ("cost_per_hour", ["0.3800", "0.40"], FieldChange("cost_per_hour", "0.38", "0.40")),
        ("is_visible", [True, False], FieldChange("is_visible", "yes", "no")),
        ("cores_limit", ["", "2"], FieldChange("cores_limit", "empty", "2")),
        ("command", [["a", "b"], ["a", "c"]], FieldChange("command", removed=("b",), added=("c",))),
        ("command", [["a", "b"], ["b", "a"]], FieldChange("command", "a, b", "b, a")),
        ("variables", [{"A": "1"}, {"A": "2"}], FieldChange("variables", removed=("A=1",), added=("A=2",))),
        ("tolerations", [[], [{"key": "spot", "operator": "Exists"}]], FieldChange("tolerations", added=("spot Exists",))),
    ],
)  # fmt: skip
def test_a_change_is_told_as_its_reader_would(name: str, values: list[Any], change: FieldChange) -> None:
    line = history_line(AuditEntry(action="changed", changes={name: values}), {"memory": "Memory"}, is_reversible=True)
    assert line.changes == (change,)
    assert line.can_be_taken_back
