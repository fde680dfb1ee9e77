"""The Ingress of an execution, where an installation asks for one, and what it takes to be let in."""

import json
from typing import Any

from django.test import override_settings

from grid.executions import ingress
from grid.executions.front import AuthProxySpec, IngressSpec, configuration
from grid.executions.ingress import auth_key
from grid.executions.request import draft
from grid.executions.spec import parse_spec
from grid.kube.resources import CONFIG_MAPS, INGRESSES, SERVICES
from grid.workspaces.shutdown.records import watched_run
from tests.controller.world import World, fresh, in_world, to_running
from tests.executions.networks import network
from tests.executions.test_manifests import spec
from tests.support.golden import assert_golden
from tests.support.shop import NOW, Shop

INGRESS = IngressSpec(
    class_name="nginx", tls_secret="wildcard", origin="https://abc.workspaces.test:8443", proxy="proxy.system.svc:80"
)
FRONT = AuthProxySpec(image="nginx:1", port=19080, cores="10m", memory="32Mi", body_mebibytes=64, ingress=INGRESS)
asked_for = override_settings(
    FRONT_IMAGE="nginx:1", INGRESS_CLASS="nginx", WORKSPACE_ORIGIN="https://workspaces.test", WORKSPACE_PATHS=False
)


def test_the_objects() -> None:
    made = ingress.objects(spec(front=FRONT), namespace="n", anchor_uid="u", front_key="k")
    assert [(manifest.resource, manifest.name) for manifest in made] == [
        (SERVICES, "workspace-abc"),
        (SERVICES, "workspace-abc-proxy"),
        (INGRESSES, "workspace-abc-proxy"),
        (INGRESSES, "workspace-abc"),
    ]
    assert_golden("ingress", json.dumps([manifest.body for manifest in made], indent=1), ending="json")


def test_the_configuration_of_a_front_behind_an_ingress() -> None:
    assert_golden(
        "front-behind-ingress",
        configuration(FRONT, upstream=("unix:PROGRAM_SOCKET",), is_any_answer_ready=True),
        ending="conf",
    )


def test_execution_key_tells_nothing_about_others_or_tokens() -> None:
    assert len({auth_key("abc", "k"), auth_key("abd", "k"), auth_key("abc", "l")}) == 3
    assert "k3y" not in auth_key("abc", "k3y")


def test_ingress_exists_only_where_the_installation_wants_it(shop: Shop) -> None:
    def frozen() -> IngressSpec | None:
        front = parse_spec(draft(shop.request(), now=NOW, execution_id="new")[0]).front
        return front.ingress if front else None

    assert frozen() is None
    with override_settings(FRONT_IMAGE="nginx:1"):
        assert frozen() is None
    with asked_for:
        made = frozen()
        assert made is not None
        assert (made.class_name, made.host) == ("nginx", "new.workspaces.test")
        with override_settings(WORKSPACE_PATHS=True):
            assert frozen() is None, "all executions share a host name"
        shop.workspace.allows_service_workers = True
        shop.workspace.save()
        assert frozen() is None, "the proxy makes their scripts harmless"


@in_world
async def test_ingress_comes_with_the_execution_which_owns_it(shop: Shop) -> None:
    world, plain = World(), shop.launch()
    with asked_for:
        straight = shop.launch()
    controller = world.controller()
    await to_running(world, controller)
    made = [*world.cluster.objects(INGRESSES), *world.cluster.objects(SERVICES)]
    name = fresh(straight).object_name
    (anchor,) = [kept for kept in world.cluster.objects(CONFIG_MAPS) if kept["metadata"]["name"] == name]
    assert {kept["metadata"]["name"] for kept in made} == {name, f"{name}-proxy"}
    owners: list[Any] = [owner["uid"] for kept in made for owner in kept["metadata"]["ownerReferences"]]
    assert owners == [anchor["metadata"]["uid"]] * 4
    runs = [watched_run(fresh(row)) for row in (plain, straight)]
    assert [run.is_straight for run in runs if run] == [False, True]


def test_named_ingress_reaches_fronts_only() -> None:
    net = network(ingress="ingress-nginx")
    for port in (19080, 19081):
        assert net.lets("the ingress controller", "another workspace", port)
        assert not net.lets("a pod of another namespace", "another workspace", port)
        assert not net.lets("the ingress controller", "head", port)
    assert not net.lets("the ingress controller", "another workspace", 8888)
