"""The nginx in front of workspaces and apps: its configuration, its place in the pod, and what it reserves."""

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import override_settings

from grid.centralconfig import FRONT_ENABLED, FRONT_MAXIMUM_BODY
from grid.diagnosis.shortages import needed
from grid.kube.objects import RawObject
from grid.kube.resources import CONFIG_MAPS, PODS, SECRETS
from grid.launch.front import FrontSpec, configuration, front_port, token
from grid.launch.preview import Preview
from grid.launch.request import draft
from grid.launch.spec import parse_spec
from tests.launch.conftest import NOW, Shop
from tests.launch.test_files_in_git import FILES
from tests.launch.test_manifests import objects, spec
from tests.launch.world import World, fresh, in_world
from tests.support.golden import assert_golden

FRONT = FrontSpec(
    image="nginx:1",
    port=19080,
    cores="10m",
    memory="32Mi",
    body_mebibytes=64,
    page="https://grid.test/executions/abc/?a='$b'",
)
with_fronts = override_settings(FRONT_IMAGE="nginx:1")


def test_the_configuration() -> None:
    assert_golden("front", configuration(FRONT, upstream=8888), ending="conf")


def test_the_front_is_a_sidecar_before_the_executor() -> None:
    pod = objects(spec(front=FRONT, files=FILES), front_key="k")[PODS]["spec"]
    assert [one["name"] for one in pod["initContainers"]] == ["nginx", "executor"]
    without = objects(spec(files=FILES))[PODS]["spec"]
    assert pod["containers"] == without["containers"]
    front = objects(spec(front=FRONT), front_key="k")[PODS]["spec"]
    del front["containers"]
    assert_golden("pod-with-front", json.dumps(front, indent=1), ending="json")


def test_the_key_is_in_the_secret_alone_and_only_nginx_mounts_it() -> None:
    made = objects(spec(front=FRONT), front_key="the-key")
    secret = made[SECRETS]["data"]
    assert "the-key" in base64.b64decode(secret["front.key"]).decode()
    assert "the-key" not in json.dumps([body for resource, body in made.items() if resource != SECRETS])
    (program,) = made[PODS]["spec"]["containers"]
    assert not {mount["name"] for mount in program["volumeMounts"]} & {"front", "front-key", "front-run"}
    assert "front.key" not in json.dumps(program)


def test_without_a_front_nothing_is_added() -> None:
    made = objects(spec())
    assert "initContainers" not in made[PODS]["spec"]
    assert "nginx.conf" not in made[CONFIG_MAPS]["data"]
    assert "front.key" not in made[SECRETS]["data"]


def test_tokens_differ_by_execution_key_and_time() -> None:
    found = [token("abc", "k", 1), token("abd", "k", 1), token("abc", "l", 1), token("abc", "k", 2)]
    assert len({one.partition(",")[0] for one in found}) == 4
    assert found[0].endswith(",1")


def test_the_front_never_has_its_programs_port() -> None:
    assert (front_port(8888), front_port(19080)) == (19080, 19081)


def test_workspaces_have_a_front_where_there_is_an_image_and_it_is_on(
    shop: Shop, configure: Callable[..., None]
) -> None:
    def front() -> FrontSpec | None:
        return parse_spec(draft(shop.request(), now=NOW, execution_id="new")[0]).front

    assert front() is None
    with with_fronts:
        configure(FRONT_MAXIMUM_BODY, 7)
        found = front()
        assert found is not None
        assert (found.image, found.body_mebibytes) == ("nginx:1", 7)
        assert found.page.endswith("/executions/new/")
        configure(FRONT_ENABLED, 0)
        assert front() is None


@with_fronts
def test_jobs_and_clusters_have_no_front(shop: Shop) -> None:
    assert parse_spec(shop.launch(kind="job", environment=shop.job)).front is None
    assert parse_spec(shop.launch_cluster()).front is None


def test_the_fit_card_counts_the_front_beside_the_program(shop: Shop) -> None:
    def requests() -> Any:
        (plan,) = Preview.of(draft(shop.request(), now=NOW, execution_id="new")).pods()
        return plan.requests

    without = requests()
    with with_fronts:
        preview = Preview.of(draft(shop.request(), now=NOW, execution_id="new"))
        assert preview.beside() == {"cpu": 10, "memory": 32 * 2**20}
        (needs,) = preview.needs()
        assert needed(needs)["requests.memory"] == without["memory"] + 32 * 2**20, "a quota counts all containers"
        assert needed(needs)["pods"] == 1
        assert requests() == {**without, "cpu": without["cpu"] + 10, "memory": without["memory"] + 32 * 2**20}


@in_world
async def test_a_cluster_without_native_sidecars_runs_the_program_without_a_front(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    with with_fronts:
        world, execution = World(), shop.launch()
    create = world.cluster.create

    async def forgetful(resource: Any, body: RawObject, **more: Any) -> RawObject:
        """As an API server before 1.29: what it does not know it drops."""
        if resource == PODS and "initContainers" in body["spec"]:
            steps = [{**one} for one in body["spec"]["initContainers"]]
            for one in steps:
                one.pop("restartPolicy", None)
            body = {**body, "spec": {**body["spec"], "initContainers": steps}}
        return await create(resource, body, **more)

    monkeypatch.setattr(world.cluster, "create", forgetful)
    await world.step(world.controller())
    assert fresh(execution).state == "deploying"
    assert "initContainers" not in world.pod_of(execution)["spec"]
