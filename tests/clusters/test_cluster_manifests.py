"""The objects of a cluster, whole, and what of them depends on people's texts and choices."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.clusters import frameworks
from grid.clusters.frameworks import framework
from grid.clusters.kind import variables_of_clients
from grid.core.labels import KEYS
from grid.executions.manifests import Manifest, build
from grid.executions.spec import EnvironmentSpec, ScalingSpec
from grid.executions.storage import Storage
from grid.kube.resources import DEPLOYMENTS, PODS, SECRETS, VOLUME_CLAIMS
from tests.clusters.cluster_objects import firsts, metadata, object_of, seconds
from tests.clusters.cluster_specs import WORKER_PODS, cluster, spec
from tests.support.golden import assert_golden

FRAMEWORKS = pytest.mark.parametrize("name", ["dask", "ray", "spark"])
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")
PROGRAMS = {path.read_text(): path.name for path in Path(frameworks.__file__).parent.glob("*_*.py")}
LONGEST = 150  # characters of a value that stands on one line


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
