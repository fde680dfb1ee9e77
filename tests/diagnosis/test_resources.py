"""What a pod requests, with every resource by its own name."""

from typing import Any

import pytest

from grid.diagnosis.resources import requested_amounts, resource_amounts
from grid.kube.objects import Pod
from tests.support.builders import decode, pod


def container(**requests: str) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": requests}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"containers": [container()]}, {"pods": 1}),
        ({"containers": [container(cpu="1"), container(cpu="500m")]}, {"cpu": 1500, "pods": 1}),
        (
            {"containers": [container(**{"example.com/fpga": "2", "ephemeral-storage": "1Ki"})]},
            {"example.com/fpga": 2, "ephemeral-storage": 1024, "pods": 1},
        ),
        ({"containers": [container(cpu="1")], "initContainers": [container(cpu="3", memory="5")]}, {"cpu": 3000, "memory": 5, "pods": 1}),
        (
            {"containers": [container(cpu="1")], "initContainers": [container(cpu="1") | {"restartPolicy": "Always"}, container(cpu="3")]},
            {"cpu": 4000, "pods": 1},
        ),
        (
            {"containers": [container(cpu="1", gpu="1")], "resources": {"requests": {"cpu": "8"}}, "overhead": {"cpu": "10m"}},
            {"cpu": 8010, "gpu": 1, "pods": 1},
        ),
    ],
)  # fmt: skip
def test_a_pod_takes_of_its_node(spec: dict[str, Any], expected: dict[str, int]) -> None:
    assert requested_amounts(decode(pod("p", spec=spec), Pod)) == expected


def test_a_quantity_that_cannot_be_read_counts_as_nothing() -> None:
    assert resource_amounts({"cpu": "many", "memory": "1Mi"}) == {"cpu": 0, "memory": 2**20}
