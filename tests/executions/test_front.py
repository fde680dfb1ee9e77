"""How people's requests reach an execution: the nginx in front of workspaces and apps, and the Ingress where there is one."""

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import override_settings
from msgspec.structs import replace

from grid.configuration import FRONT_ENABLED, FRONT_MAXIMUM_BODY
from grid.diagnosis.shortages import needed
from grid.executions import ingress
from grid.executions.front import AuthProxySpec, IngressSpec, configuration, front_port, token
from grid.executions.ingress import auth_key
from grid.executions.launchrequest import JobSettings
from grid.executions.preview import Preview
from grid.executions.request import draft
from grid.executions.spec import EnvironmentSpec, ExecutionSpec, parse_spec
from grid.kube.objects import RawObject
from grid.kube.resources import CONFIG_MAPS, INGRESSES, PODS, SECRETS, SERVICES
from grid.workspaces.shutdown.records import watched_run
from tests.controller.world import World, fresh, in_world, to_running
from tests.executions.networks import network
from tests.executions.test_manifests import objects, spec
from tests.files.test_files_in_git import FILES
from tests.support.builders import condition, container_status, stamp
from tests.support.golden import assert_golden
from tests.support.podsecurity import violations
from tests.support.shop import NOW, Shop

FRONT = AuthProxySpec(
    image="nginx:1",
    port=19080,
    cores="10m",
    memory="32Mi",
    body_mebibytes=64,
    page="https://grid.test/executions/abc/?a='$b'",
)
with_fronts = override_settings(FRONT_IMAGE="nginx:1")
INGRESS = IngressSpec(
    class_name="nginx", tls_secret="wildcard", origin="https://abc.workspaces.test:8443", proxy="proxy.system.svc:80"
)
INGRESS_FRONT = AuthProxySpec(
    image="nginx:1", port=19080, cores="10m", memory="32Mi", body_mebibytes=64, ingress=INGRESS
)
asked_for = override_settings(
    FRONT_IMAGE="nginx:1", INGRESS_CLASS="nginx", WORKSPACE_ORIGIN="https://workspaces.test", WORKSPACE_PATHS=False
)


@pytest.mark.parametrize(("name", "front"), [("front", FRONT), ("front-behind-ingress", INGRESS_FRONT)])
def test_the_configuration(name: str, front: AuthProxySpec) -> None:
    made = configuration(front, upstream=("unix:PROGRAM_SOCKET",), is_any_answer_ready=True)
    assert_golden(name, made, ending="conf")


def test_the_front_is_a_sidecar_before_the_executor() -> None:
    pod = objects(spec(front=FRONT, files=FILES), front_key="k")[PODS]["spec"]
    assert [container["name"] for container in pod["initContainers"]] == ["nginx", "executor"]
    without = objects(spec(files=FILES))[PODS]["spec"]
    assert pod["containers"][0]["command"] == without["containers"][0]["command"]
    front = objects(spec(front=FRONT), front_key="k")[PODS]["spec"]
    del front["containers"]
    assert_golden("pod-with-front", json.dumps(front, indent=1), ending="json")


def test_front_key_is_in_secret_mounted_by_nginx_only() -> None:
    made = objects(spec(front=FRONT), front_key="the-key")
    secret = made[SECRETS]["data"]
    assert "the-key" in base64.b64decode(secret["front.key"]).decode()
    assert "the-key" not in json.dumps([body for resource, body in made.items() if resource != SECRETS])
    (program,) = made[PODS]["spec"]["containers"]
    assert not {mount["name"] for mount in program["volumeMounts"]} & {"front", "front-key", "front-run"}
    assert "front.key" not in json.dumps(program)


def test_tokens_differ_by_execution_key_and_time() -> None:
    tokens = [token("abc", "k", 1), token("abd", "k", 1), token("abc", "l", 1), token("abc", "k", 2)]
    assert len({each.partition(",")[0] for each in tokens}) == 4
    assert tokens[0].endswith(",1")


def test_the_front_never_has_its_programs_port() -> None:
    assert (front_port(8888), front_port(19080)) == (19080, 19081)


def test_workspaces_have_enabled_fronts_where_there_is_an_image(shop: Shop, configure: Callable[..., None]) -> None:
    def front() -> AuthProxySpec | None:
        return parse_spec(draft(shop.request(), now=NOW, execution_id="new")[0]).front

    assert front() is None
    with with_fronts:
        configure(FRONT_MAXIMUM_BODY, 7)
        made = front()
        assert made is not None
        assert (made.image, made.body_mebibytes) == ("nginx:1", 7)
        assert made.page.endswith("/executions/new/")
        configure(FRONT_ENABLED, 0)
        assert front() is None


BOTH_WAYS = ("lab", "--sock={socket}", "--ip={host}", "--port={port}", "--base={base_url}")


def program_of(made: ExecutionSpec) -> RawObject:
    """Its container, with the variables by name."""
    (run,) = objects(made, front_key="the-key")[PODS]["spec"]["containers"]
    return {**run, "env": {variable["name"]: variable for variable in run["env"]}}


def with_command(*command: str, readiness_path: str = "", **changes: Any) -> ExecutionSpec:
    return spec(
        environment=EnvironmentSpec(id="x", name="X", image="x", command=command, readiness_path=readiness_path),
        **changes,
    )


def test_program_behind_front_listens_on_a_private_socket() -> None:
    made = objects(with_command(*BOTH_WAYS, front=FRONT, files=FILES), front_key="k")
    pod = made[PODS]["spec"]
    (run,) = pod["containers"]
    assert run["command"] == ["lab", "--sock=/run/program/web.sock", "--base=/"]
    everybody = [*pod["containers"], *pod["initContainers"]]
    mounting = {
        container["name"]
        for container in everybody
        if any(mount["mountPath"] == "/run/program" for mount in container["volumeMounts"])
    }
    assert mounting == {"run", "nginx"}
    assert {"name": "sockets", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}} in pod["volumes"]
    assert "server unix:PROGRAM_SOCKET;" in made[CONFIG_MAPS]["data"]["nginx.conf"]
    assert violations(made[PODS]["metadata"], pod) == []


def test_port_only_program_behind_front_listens_on_loopback() -> None:
    made = with_command("web", "--ip={host}", "--port={port}", front=FRONT)
    run = program_of(made)
    assert run["command"] == ["web", "--ip=$(GRID_LISTEN_HOST)", "--port=8888"]
    assert run["env"]["GRID_LISTEN_HOST"]["value"] == "127.0.0.1"
    whole = objects(made, front_key="k")
    (nginx,) = whole[PODS]["spec"]["initContainers"]
    assert {"name": "GRID_LISTEN_HOST", "value": "127.0.0.1"} in nginx["env"]
    text = whole[CONFIG_MAPS]["data"]["nginx.conf"]
    assert "server PROGRAM_HOST:8888 max_fails=0;\n" in text
    assert "server POD_ADDRESS:8888 max_fails=0 backup;\n" in text, "where its command says $(POD_IP)"


@pytest.mark.parametrize(("path", "kind"), [("", "startupProbe"), ("/healthz?full=1", "readinessProbe")])
def test_kubelet_probes_program_at_its_front_with_own_key(path: str, kind: str) -> None:
    run = program_of(with_command(*BOTH_WAYS, front=FRONT, readiness_path=path))
    assert {name for name in run if name.endswith("Probe")} == {kind}
    asked = run[kind]["httpGet"]
    assert (asked["port"], asked["path"]) == (19080, path or "/")
    (header,) = asked["httpHeaders"]
    assert header["name"] == "x-grid-probe"
    secret = base64.b64decode(objects(with_command(front=FRONT), front_key="the-key")[SECRETS]["data"]["front.key"])
    assert f'set $probe_key "{header["value"]}";' in secret.decode()
    assert "the-key" not in header["value"]


@with_fronts
def test_jobs_without_a_page_and_clusters_have_no_front(shop: Shop) -> None:
    assert parse_spec(shop.launch(kind="job", environment=shop.job)).front is None
    assert parse_spec(shop.launch_cluster()).front is None


@with_fronts
def test_job_with_page_runs_before_its_page_is_there(shop: Shop) -> None:
    made = parse_spec(shop.launch(kind="job", environment=shop.job, job=JobSettings(page_port=6006)))
    assert made.front is not None
    assert made.port == 6006
    pod = objects(replace(made, files=FILES))[PODS]["spec"]
    assert [container["name"] for container in pod["initContainers"]] == ["nginx", "executor"]
    (run,) = pod["containers"]
    assert "readinessProbe" not in run
    assert run["ports"] == [{"name": "http", "containerPort": 6006, "protocol": "TCP"}]


def test_the_fit_card_counts_the_front_beside_the_program(shop: Shop) -> None:
    def requests() -> Any:
        (plan,) = Preview.of(draft(shop.request(), now=NOW, execution_id="new")).pods()
        return plan.requests

    without = requests()
    with with_fronts:
        preview = Preview.of(draft(shop.request(), now=NOW, execution_id="new"))
        assert preview.sidecars() == {"cpu": 10, "memory": 32 * 2**20}
        (needs,) = preview.needs()
        assert needed(needs)["requests.memory"] == without["memory"] + 32 * 2**20, "a quota counts all containers"
        assert needed(needs)["pods"] == 1
        assert requests() == {**without, "cpu": without["cpu"] + 10, "memory": without["memory"] + 32 * 2**20}


@in_world
async def test_ordinary_front_container_goes_when_the_program_ended(shop: Shop) -> None:
    with with_fronts:
        world, execution = World(), shop.launch()
    world.cluster.server.registry.native_sidecars = False
    controller = world.controller()
    await world.step(controller)
    pod = world.pod_of(execution)
    assert not pod["spec"].get("initContainers")
    assert [container["name"] for container in pod["spec"]["containers"]] == ["run", "nginx"]

    async def becomes(phase: str, run: RawObject, ready: bool) -> None:
        pod = world.pod_of(execution)
        pod["spec"]["nodeName"] = "node-a"
        pod["status"] = {
            "phase": phase,
            "conditions": [condition("PodScheduled", "True"), condition("Ready", str(ready))],
            "containerStatuses": [
                container_status("nginx", ready=True),
                container_status("run", ready=ready, state=run),
            ],
        }
        world.cluster.put(PODS, pod)
        await world.step(controller)

    running = {"running": {"startedAt": stamp(world.now)}}
    for _ in range(2):
        await becomes("Running", running, True)
    assert fresh(execution).state == "running"
    await becomes("Running", {"terminated": {"exitCode": 1, "reason": "Error"}}, False)
    assert fresh(execution).state == "running", "it is started again"
    await becomes("Running", {"terminated": {"exitCode": 0, "reason": "Completed"}}, False)
    assert fresh(execution).state == "finishing"
    for _ in range(3):
        world.behave()
        await world.step(controller)
    assert world.pods() == []
    assert fresh(execution).state == "succeeded"


def test_the_objects() -> None:
    made = ingress.objects(spec(front=INGRESS_FRONT), namespace="n", anchor_uid="u", front_key="k")
    assert_golden("ingress", json.dumps([manifest.body for manifest in made], indent=1), ending="json")


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
