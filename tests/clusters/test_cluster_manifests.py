"""The objects of a cluster, whole, and what of them depends on people's texts and choices."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from grid.clusters import frameworks
from grid.clusters.frameworks import framework
from grid.clusters.kind import variables_of_clients
from grid.clusters.manifests import first, workers
from grid.core.labels import KEYS
from grid.executions.manifests import Manifest, build
from grid.executions.spec import EnvironmentSpec, ExecutionSpec, ScalingSpec
from grid.executions.storage import Storage
from grid.kube.objects import RawObject
from grid.kube.resources import AUTOSCALERS, DEPLOYMENTS, PODS, SECRETS, VOLUME_CLAIMS
from tests.clusters.cluster_specs import LABELS, OWNER, WORKER_PODS, cluster, spec
from tests.executions.networks import network
from tests.support.golden import assert_golden

FRAMEWORKS = pytest.mark.parametrize("name", ["dask", "ray", "spark"])
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")
PROGRAMS = {path.read_text(): path.name for path in Path(frameworks.__file__).parent.glob("*_*.py")}
LONGEST = 150  # characters of a value that stands on one line


def metadata(name: str) -> dict[str, Any]:
    return {"name": name, "namespace": "grid", "labels": LABELS, "ownerReferences": [OWNER]}


def object_of(manifests: list[Any], resource: Any, name: str = "") -> RawObject:
    (body,) = [m.body for m in manifests if m.resource == resource and name in ("", m.name)]
    return dict(body)


def firsts(of: ExecutionSpec, **more: Any) -> list[Any]:
    """What is made first, up to the head."""
    return first(of, namespace="grid", anchor_uid="anchor-uid", **more)


def seconds(of: ExecutionSpec) -> list[Any]:
    """What is made once the head has an address."""
    return workers(of, namespace="grid", anchor_uid="anchor-uid", head_address="10.0.0.9")


def is_of_words(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def lines_of(value: Any, place: str = "") -> Iterator[str]:
    """Each value with its place."""
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= LONGEST or not isinstance(value, dict | list) or is_of_words(value):
        yield f"{place.removeprefix('.')}: {text}"
        return
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        yield from lines_of(item, f"{place}.{key}")


def described(made: Manifest) -> list[str]:
    """Metadata are left out where they are the usual ones, and of our own programs only their file names are written."""
    text = json.dumps(made.body)
    for program, name in PROGRAMS.items():
        text = text.replace(json.dumps(program), json.dumps(name))
    body = json.loads(text)
    if body["metadata"] == metadata(made.name):
        del body["metadata"]
    owned = "owned" if made.owned else "by itself"
    return [f"--- {body.pop('apiVersion')} {body.pop('kind')} {made.name}, {owned}", *lines_of(body)]


@FRAMEWORKS
def test_objects_of_a_cluster_are_as_stored(name: str) -> None:
    """In the order in which they are made: rules before pods, and workers once the head has an address."""
    scaling = ScalingSpec(target_cpu=70, target_memory=85, on_demand=True, up_stabilisation_seconds=10)
    of = spec(of=cluster(name, scaling=scaling))
    lines = [line for made in (*firsts(of), *seconds(of)) for line in described(made)]
    assert_golden(f"cluster-objects-{name}", "\n".join(lines), ending="txt")


def test_volume_of_the_project_is_the_usual_one() -> None:
    made = firsts(spec(), storage=Storage("ReadWriteOnce", "local-path"))
    assert object_of(made, VOLUME_CLAIMS)["spec"]["storageClassName"] == "local-path"


def test_variable_values_are_in_a_secret_of_the_cluster() -> None:
    made = firsts(spec())
    assert object_of(made, SECRETS)["metadata"] == metadata("cluster-abc")
    assert object_of(made, SECRETS)["data"].keys() == {"variable.THREADS", "variable.POD_IP"}
    plain = EnvironmentSpec(id="science", name="Science", image="science:1", image_pull_secret="our-registry")
    of = spec(environment=plain)
    assert not [m for m in firsts(of) if m.resource == SECRETS], "nothing to keep"
    for deployment in (object_of(firsts(of), DEPLOYMENTS), object_of(seconds(of), DEPLOYMENTS)):
        assert deployment["spec"]["template"]["spec"]["imagePullSecrets"] == [{"name": "our-registry"}]


def test_workers_without_storage_of_their_own_use_the_nodes() -> None:
    template = object_of(seconds(spec(of=cluster(local_storage=""))), DEPLOYMENTS)["spec"]["template"]
    assert template["spec"]["volumes"][-1] == {"name": "local", "emptyDir": {"sizeLimit": "20Gi"}}


@given(st.text(max_size=150), st.text(max_size=120))
def test_texts_of_people_become_valid_labels_outside_selectors(owner: str, title: str) -> None:
    of = spec(owner=owner, title=title)
    for made in (object_of(firsts(of), DEPLOYMENTS), object_of(seconds(of), DEPLOYMENTS)):
        template = made["spec"]["template"]["metadata"]
        assert all(LABEL_VALUE.fullmatch(value) for value in template["labels"].values())
        assert template["annotations"]["dominodatalab.com/title"] == title
        selector = made["spec"]["selector"]["matchLabels"]
        assert selector.keys() == WORKER_PODS.keys() and selector.items() <= template["labels"].items()


@FRAMEWORKS
def test_workspace_finds_its_cluster_in_its_variables(name: str) -> None:
    of = spec(of=cluster(name))
    theirs = dict(framework(name).client_variables(of, "10.0.0.9"))
    assert theirs
    environment = EnvironmentSpec(id="lab", name="Lab", image="lab:1", variables={next(iter(theirs)): "elsewhere"})
    workspace = spec(id="xyz", kind="workspace", cluster=None, environment=environment)
    made = build(
        workspace, namespace="grid", token="t", anchor_uid="u", client_variables=variables_of_clients(of, "10.0.0.9")
    )
    env = object_of(made, PODS)["spec"]["containers"][0]["env"]
    assert {e["name"]: e["value"] for e in env if e["name"] in theirs} == theirs
    assert len({e["name"] for e in env}) == len(env)
    assert {KEYS.execution: "xyz"}.items() <= object_of(made, PODS)["metadata"]["labels"].items()


# --- Its autoscaler ---


@pytest.mark.parametrize(
    ("scaling", "metrics"),
    [
        (ScalingSpec(target_cpu=80, target_memory=0), ["cpu"]),
        (ScalingSpec(target_cpu=0, target_memory=80), ["memory"]),
        (ScalingSpec(target_cpu=0, target_memory=0, on_demand=True), ["compute_grid_wanted_workers"]),
    ],
)
def test_a_metric_that_is_not_used_is_left_out(scaling: ScalingSpec, metrics: list[str]) -> None:
    body = object_of(seconds(spec(of=cluster(scaling=scaling))), AUTOSCALERS)
    names = [m.get("resource", m.get("external", {}).get("metric"))["name"] for m in body["spec"]["metrics"]]
    assert names == metrics


@pytest.mark.parametrize(
    ("cpu", "memory", "demand", "seconds_waited"),
    [(0, 0, True, 0), (80, 0, True, 300), (0, 80, True, 300), (80, 0, False, 300)],
)
def test_shrinking_waits_for_nothing_on_demand_alone(cpu: int, memory: int, demand: bool, seconds_waited: int) -> None:
    scaling = ScalingSpec(target_cpu=cpu, target_memory=memory, on_demand=demand)
    behavior = object_of(seconds(spec(of=cluster(scaling=scaling))), AUTOSCALERS)["spec"]["behavior"]
    assert behavior["scaleDown"]["stabilizationWindowSeconds"] == seconds_waited
    assert behavior["scaleUp"]["stabilizationWindowSeconds"] == 0


@pytest.mark.parametrize(
    "scaling",
    [ScalingSpec(autoscale=False, on_demand=True), ScalingSpec(target_cpu=0, target_memory=0)],
    ids=["switched off", "nothing to scale on"],
)
def test_a_cluster_of_a_fixed_size_has_no_autoscaler(scaling: ScalingSpec) -> None:
    of = spec(of=cluster(scaling=scaling, workers_minimum=3))
    assert [m.resource for m in seconds(of)] == [DEPLOYMENTS]
    assert object_of(seconds(of), DEPLOYMENTS)["spec"]["replicas"] == 3


def test_empty_policy_is_omitted_and_no_policies_disable_scaling() -> None:
    scaling = ScalingSpec(up_workers=0, down_percent=0)
    behavior = object_of(seconds(spec(of=cluster(scaling=scaling))), AUTOSCALERS)["spec"]["behavior"]
    assert behavior["scaleUp"]["policies"] == [{"type": "Percent", "value": 100, "periodSeconds": 15}]
    assert behavior["scaleDown"]["selectPolicy"] == "Disabled"


# --- Who reaches whom where NetworkPolicies are enforced ---

ANY_PORT, LAB = 43210, 8888


@FRAMEWORKS
def test_members_proxy_and_controller_reach_what_they_need_alone(name: str) -> None:
    net, page, calls_back = network(name), framework(name).ui_port, name == "spark"
    inside = [("worker", "head"), ("head", "worker"), ("worker", "worker"), ("workspace", "worker")]
    open_to = {
        **{(source, to, ANY_PORT): True for source, to in inside},
        **{("workspace", "head", port.target): True for port in framework(name).head(spec()).ports},
        **{(source, "workspace", port): calls_back for source in ("worker", "head") for port in (ANY_PORT, 4040)},
        **{(source, "head", page): source != "web" for source in ("proxy", "controller", "web")},
        **{(source, "head", ANY_PORT): False for source in ("proxy", "controller")},
        **{(source, "worker", page): False for source in ("proxy", "controller")},
        ("proxy", "workspace", LAB): True,
        ("web", "workspace", LAB): False,
    }
    assert {way: net.lets(*way) for way in open_to} == open_to


def test_a_cluster_of_its_own_opens_no_other_pod() -> None:
    net = network("spark", attached=False)
    assert not net.lets("worker", "workspace", ANY_PORT)
    assert not net.lets("workspace", "head", 7077)


@FRAMEWORKS
@pytest.mark.parametrize("stranger", ["another workspace", "another head", "a pod of another namespace"])
def test_strangers_are_refused(name: str, stranger: str) -> None:
    net = network(name)
    for port in (framework(name).ui_port, ANY_PORT, LAB):
        for to in ("head", "worker", "workspace"):
            assert not net.lets(stranger, to, port)
            assert not net.lets(to, stranger, port)
