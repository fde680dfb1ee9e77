"""The fixtures of tests of pages and of launches that this room uses, and a workspace that runs."""

import pytest

from grid.models import Environment, Execution, HardwareTier, Project, State
from tests.conftest import People
from tests.support.frozen import on_tier
from tests.support.pages import clock as clock, cluster as cluster, patient as patient, runtime as runtime
from tests.support.shop import shop as shop


@pytest.fixture
def execution(people: People) -> Execution:
    project = Project.objects.start(id="p", name="P", owner=people.owner)
    project.members.add(people.teammate, through_defaults={"role": "contributor"})
    return Execution.objects.create(
        kind="workspace",
        owner=people.owner,
        project=project,
        environment=Environment.objects.create(id="e", name="E", image="i", port=8888),
        **on_tier(HardwareTier.objects.create(id="t", name="T", node_pool="default", cores="1", memory="1Gi")),
        spec={"port": 8888},
        state=State.RUNNING,
    )
