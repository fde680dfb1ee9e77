"""A PriorityClass gives a pod its number when the pod is created; its value never changes, and pods cannot choose another one."""

import secrets
from collections.abc import AsyncIterator

import pytest_asyncio

from tests.contract.client import Object
from tests.contract.manifests import pod
from tests.contract.space import Space
from tests.support.waiting import eventually


def priority_class(name: str, **fields: object) -> Object:
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, **fields}


@pytest_asyncio.fixture
async def high(cluster: Space, space: Space) -> AsyncIterator[str]:
    """The name of a class with the value 1000. Admission reads classes from a cache that hears of a new one a moment later."""
    name = f"contract-{secrets.token_hex(4)}"
    (await cluster.create("priorityclasses", priority_class(name, value=1000))).ok(201)

    async def is_known() -> bool | None:
        answer = await space.create("pods", pod("probe", spec={"priorityClassName": name}), dryRun="All")
        return answer.status == 201 or None

    await eventually(is_known, f"pods of the class {name} should be admitted")
    yield name
    await cluster.delete("priorityclasses", name)


async def test_a_pod_gets_the_number_of_its_class(space: Space, high: str) -> None:
    made = (await space.create("pods", pod("important", spec={"priorityClassName": high}))).ok(201)
    assert (made["spec"]["priority"], made["spec"]["preemptionPolicy"]) == (1000, "PreemptLowerPriority")
