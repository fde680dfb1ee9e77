"""The pod with an executor, as a cluster takes it that adds to it, and as it is tried before it is made."""

from typing import Any

import pytest

from grid.kube.objects import RawObject
from grid.kube.resources import PODS
from grid.models import Project
from tests.controller.world import World, fresh, in_world
from tests.support.shop import Shop


@in_world
async def test_foreign_init_container_is_not_queried(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    Project.objects.update(files=Project.Files.GIT)
    world, execution = World(), shop.launch()
    create = world.cluster.create

    async def meshed(resource: Any, body: RawObject, **more: Any) -> RawObject:
        """As a cluster whose service mesh changes every pod."""
        if resource == PODS:
            steps = [{"name": "mesh-init", "image": "mesh:1"}, *body["spec"]["initContainers"]]
            body = {**body, "spec": {**body["spec"], "initContainers": steps}}
        return await create(resource, body, **more)

    monkeypatch.setattr(world.cluster, "create", meshed)
    await world.step(world.controller())
    assert fresh(execution).state != "error"
    assert len(world.pods()) == 1


@in_world
async def test_trial_pod_is_created_once(shop: Shop) -> None:
    Project.objects.update(files=Project.Files.GIT)
    world = World()
    for second in range(3):
        shop.launch(after=second)
    await world.step(world.controller())
    assert len(world.pods()) == 3
    tried = [request for request in world.cluster.requests if request.resource == PODS and "dry run" in str(request)]
    assert len(tried) == 1
