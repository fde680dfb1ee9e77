"""An invalid object is refused with 422 and every field that is wrong, and a field that may not change stays as it is."""

import re
from collections.abc import Sequence
from typing import Any

import pytest

from tests.contract.client import Object
from tests.contract.manifests import IMAGE, binding, config_map, deployment, disruption_budget, lease, pod
from tests.contract.space import Space
from tests.contract.versions import Version, came_with

Problem = tuple[str, str]
INVALID, REQUIRED, DUPLICATE, UNSUPPORTED, FORBIDDEN, NOT_FOUND = (
    "FieldValueInvalid",
    "FieldValueRequired",
    "FieldValueDuplicate",
    "FieldValueNotSupported",
    "FieldValueForbidden",
    "FieldValueNotFound",
)


def problems(refusal: Object) -> set[Problem]:
    """Fields with reasons; older servers repeat some, so they are a set."""
    return {(cause["field"], cause["reason"]) for cause in refusal["details"]["causes"]}


@pytest.mark.parametrize(
    ("wrong_name", "why"),
    [
        ("Bad_Name", "capitals and underscore"),
        ("-a", "a dash first"),
        ("a..b", "an empty part"),
        ("n" * 254, "too long"),
    ],
    ids=lambda value: value if " " in value else None,
)
async def test_a_name_follows_the_rules_of_host_names(space: Space, wrong_name: str, why: str) -> None:
    refusal = (await space.create("configmaps", config_map(wrong_name))).refused(422, "Invalid")
    assert problems(refusal) == {("metadata.name", INVALID)}, why


async def test_a_name_or_a_prefix_is_required(space: Space) -> None:
    nameless = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}
    assert problems((await space.create("configmaps", nameless)).refused(422, "Invalid")) == {
        ("metadata.name", REQUIRED)
    }


@pytest.mark.parametrize(
    "labels",
    [
        {"a b": "x"},
        {"-a": "x"},
        {"a/b/c": "x"},
        {"UPPER.example/a": "x"},
        {"k" * 64: "x"},
        {"k": "-x"},
        {"k": "a b"},
        {"k": "v" * 64},
    ],
)
async def test_labels_are_checked(space: Space, name: str, labels: dict[str, str]) -> None:
    refusal = (await space.create("configmaps", config_map(name, labels=labels))).refused(422, "Invalid")
    assert problems(refusal) == {("metadata.labels", INVALID)}


@pytest.mark.parametrize(
    "labels",
    [{"example.com/a.b_c-d": "A.b_c-1"}, {"k" * 63: "v" * 63}, {"empty": ""}],
    ids=["prefixed", "long", "empty"],
)
async def test_good_labels_are_accepted(space: Space, name: str, labels: dict[str, str]) -> None:
    assert (await space.create("configmaps", config_map(name, labels=labels))).ok(201)["metadata"]["labels"] == labels


async def test_annotation_keys_are_checked_and_their_size_too(space: Space, name: str) -> None:
    refusal = (await space.create("configmaps", config_map(name, annotations={"a b": "x"}))).refused(422, "Invalid")
    assert problems(refusal) == {("metadata.annotations", INVALID)}
    large = {"example.com/a": "x" * (256 * 1024)}
    refusal = (await space.create("configmaps", config_map(name, annotations=large))).refused(422, "Invalid")
    assert problems(refusal) == {("metadata.annotations", "FieldValueTooLong")}


CONTAINER_PROBLEMS: list[tuple[str, Object, set[Problem]]] = [
    ("no name", {"name": ""}, {("name", REQUIRED)}),
    ("no image", {"image": ""}, {("image", REQUIRED)}),
    ("a bad name", {"name": "App_1"}, {("name", INVALID)}),
    ("an unknown pull policy", {"imagePullPolicy": "Maybe"}, {("imagePullPolicy", UNSUPPORTED)}),
    ("a negative request", {"resources": {"requests": {"cpu": "-1"}}}, {("resources.requests[cpu]", INVALID)}),
    (
        "more than its limit",
        {"resources": {"requests": {"memory": "2Gi"}, "limits": {"memory": "1Gi"}}},
        {("resources.requests", INVALID)},
    ),
    ("a GPU without limit", {"resources": {"requests": {"nvidia.com/gpu": "1"}}}, {("resources.limits", REQUIRED)}),
    (
        "half a GPU",
        {"resources": {"limits": {"nvidia.com/gpu": "0.5"}}},
        {("resources.limits[nvidia.com/gpu]", INVALID), ("resources.requests[nvidia.com/gpu]", INVALID)},
    ),
    (
        "fewer GPUs asked than allowed",
        {"resources": {"limits": {"nvidia.com/gpu": "2"}, "requests": {"nvidia.com/gpu": "1"}}},
        {("resources.requests", INVALID)},
    ),
    (
        "an unknown resource",
        {"resources": {"limits": {"gpu": "1"}}},
        {("resources.limits[gpu]", INVALID), ("resources.requests[gpu]", INVALID)},
    ),
    ("a variable without name", {"env": [{"name": "", "value": "x"}]}, {("env[0].name", REQUIRED)}),
    ("a variable with a bad name", {"env": [{"name": "1=2", "value": "x"}]}, {("env[0].name", INVALID)}),
    (
        "a variable with two sources",
        {"env": [{"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]},
        {("env[0].valueFrom", INVALID)},
    ),
    (
        "a mount of no volume",
        {"volumeMounts": [{"name": "nope", "mountPath": "/x"}]},
        {("volumeMounts[0].name", NOT_FOUND)},
    ),
    ("a port out of range", {"ports": [{"containerPort": 70000}]}, {("ports[0].containerPort", INVALID)}),
    ("a probe of nothing", {"livenessProbe": {}}, {("livenessProbe", REQUIRED)}),
]


@pytest.mark.parametrize(
    ("container", "wrong"), [case[1:] for case in CONTAINER_PROBLEMS], ids=[case[0] for case in CONTAINER_PROBLEMS]
)
async def test_containers_are_checked(space: Space, name: str, container: Object, wrong: set[Problem]) -> None:
    refusal = (await space.create("pods", pod(name, container=container))).refused(422, "Invalid")
    assert problems(refusal) == {(f"spec.containers[0].{field}", reason) for field, reason in wrong}


POD_PROBLEMS: list[tuple[str, Object, set[Problem]]] = [
    ("no container", {"containers": []}, {("containers", REQUIRED)}),
    (
        "two containers of one name",
        {"containers": [{"name": "app", "image": IMAGE}, {"name": "app", "image": IMAGE}]},
        {("containers[1].name", DUPLICATE)},
    ),
    ("an unknown restart policy", {"restartPolicy": "Sometimes"}, {("restartPolicy", UNSUPPORTED)}),
    ("two volumes of one name", {"volumes": [{"name": "a", "emptyDir": {}}] * 2}, {("volumes[1].name", DUPLICATE)}),
    (
        "an unknown toleration",
        {"tolerations": [{"key": "a", "operator": "Like"}]},
        {("tolerations[0].operator", UNSUPPORTED)},
    ),
    (
        "a value where none belongs",
        {"tolerations": [{"key": "a", "operator": "Exists", "value": "x"}]},
        {("tolerations[0].operator", INVALID)},
    ),
]


@pytest.mark.parametrize(("spec", "wrong"), [case[1:] for case in POD_PROBLEMS], ids=[case[0] for case in POD_PROBLEMS])
async def test_pods_are_checked(space: Space, name: str, spec: Object, wrong: set[Problem]) -> None:
    refusal = (await space.create("pods", pod(name, spec=spec))).refused(422, "Invalid")
    assert problems(refusal) == {(f"spec.{field}", reason) for field, reason in wrong}


async def test_all_problems_are_told_at_once(space: Space, name: str) -> None:
    wrong = pod(
        name, labels={"a b": "x"}, spec={"restartPolicy": "Sometimes", "containers": [{"name": "", "image": ""}]}
    )
    refusal = (await space.create("pods", wrong)).refused(422, "Invalid")
    assert problems(refusal) == {
        ("metadata.labels", INVALID),
        ("spec.restartPolicy", UNSUPPORTED),
        ("spec.containers[0].name", REQUIRED),
        ("spec.containers[0].image", REQUIRED),
    }


@pytest.mark.parametrize("quantity", ["lots", "1 Gi", "1gb", "--1", "1.2.3"])
async def test_a_quantity_nobody_understands_is_a_bad_request(space: Space, name: str, quantity: str) -> None:
    resources = {"requests": {"memory": quantity}}
    (await space.create("pods", pod(name, container={"resources": resources}))).refused(400, "BadRequest")


@pytest.mark.parametrize(
    ("spec", "wrong"),
    [
        ({"replicas": -1}, {("spec.replicas", INVALID)}),
        ({"selector": {"matchLabels": {"app": "other"}}}, {("spec.template.metadata.labels", INVALID)}),
        (
            {"strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}},
            {("spec.strategy.rollingUpdate", FORBIDDEN)},
        ),
        (
            {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}},
            {("spec.strategy.rollingUpdate.maxUnavailable", INVALID)},
        ),
        ({"strategy": {"type": "Gently"}}, {("spec.strategy", UNSUPPORTED)}),
    ],
    ids=["replicas", "selector", "recreate with surge", "no way to roll", "strategy"],
)
async def test_deployments_are_checked(space: Space, name: str, spec: dict[str, Any], wrong: set[Problem]) -> None:
    refusal = (await space.create("deployments", deployment(name, **spec))).refused(422, "Invalid")
    assert wrong <= problems(refusal)


async def test_a_pod_template_is_checked_like_a_pod(space: Space, name: str) -> None:
    made = deployment(name)
    made["spec"]["template"]["spec"]["containers"][0]["image"] = ""
    refusal = (await space.create("deployments", made)).refused(422, "Invalid")
    assert problems(refusal) == {("spec.template.spec.containers[0].image", REQUIRED)}


@pytest.mark.parametrize(
    ("resource", "manifest", "wrong"),
    [
        ("configmaps", config_map("x", {"a/b": "x"}), ("data[a/b]", INVALID)),
        ("leases", lease("x", "me", leaseDurationSeconds=0), ("spec.leaseDurationSeconds", INVALID)),
        (
            "poddisruptionbudgets",
            disruption_budget("x", app="x", min_available=-1),
            ("spec.minAvailable", INVALID),
        ),
    ],
    ids=["config map", "lease", "disruption budget"],
)
async def test_other_kinds_are_checked(space: Space, resource: str, manifest: Object, wrong: Problem) -> None:
    assert problems((await space.create(resource, manifest)).refused(422, "Invalid")) == {wrong}


async def fields_of_refused_change(space: Space, resource: str, name: str, change: Object) -> Sequence[str]:
    refusal = (await space.patch(resource, name, change)).refused(422, "Invalid")
    return sorted({cause["field"] for cause in refusal["details"]["causes"]})


async def test_the_selector_of_a_deployment_stays(space: Space, name: str) -> None:
    (await space.create("deployments", deployment(name, paused=True))).ok(201)
    labels = {"app": "other"}
    change = {"spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}}}}
    assert await fields_of_refused_change(space, "deployments", name, change) == ["spec.selector"]


async def test_pod_image_may_change_and_other_spec_may_not(space: Space, name: str) -> None:
    (await space.create("pods", pod(name))).ok(201)
    image = {"spec": {"containers": [{"name": "app", "image": "registry.example/app:2"}]}}
    patched = (await space.patch("pods", name, image, kind="strategic")).ok(200)
    assert patched["spec"]["containers"][0]["image"] == "registry.example/app:2"
    for change in (
        {"restartPolicy": "Never"},
        {"nodeSelector": {"a": "b"}},
        {"serviceAccountName": "other"},
        {"containers": [{"name": "app", "image": IMAGE, "command": ["x"]}]},
    ):
        assert await fields_of_refused_change(space, "pods", name, {"spec": change}) == ["spec"]


async def test_a_pods_containers_are_neither_added_nor_removed(space: Space, name: str) -> None:
    (await space.create("pods", pod(name))).ok(201)
    more = {"spec": {"containers": [{"name": "app", "image": IMAGE}, {"name": "more", "image": IMAGE}]}}
    assert await fields_of_refused_change(space, "pods", name, more) == ["spec.containers"]


async def test_scheduling_gates_may_only_go(space: Space, name: str, version: Version) -> None:
    came_with(version, (1, 27), "scheduling gates")
    gates = [{"name": "example.com/a"}, {"name": "example.com/b"}]
    made = (await space.create("pods", pod(name, spec={"schedulingGates": gates}))).ok(201)
    scheduled = next(each for each in made["status"]["conditions"] if each["type"] == "PodScheduled")
    assert (scheduled["status"], scheduled["reason"]) == ("False", "SchedulingGated")

    async def change(spec: Object) -> Sequence[str]:
        return await fields_of_refused_change(space, "pods", name, {"spec": spec})

    assert await change({"schedulingGates": [gates[0], {"name": "example.com/new"}]}) == [
        "spec.schedulingGates[1].name"
    ]
    assert await change({"schedulingGates": gates[:1], "priority": 7}) == ["spec"]
    early = await space.create("pods", binding(name, f"{name}-node"), name=name, sub="binding")
    early.refused(409, "Conflict")
    patched = (await space.patch("pods", name, {"spec": {"schedulingGates": gates[1:]}})).ok(200)
    assert patched["spec"]["schedulingGates"] == gates[1:]
    none = (await space.patch("pods", name, {"spec": {"schedulingGates": None}})).ok(200)
    assert "schedulingGates" not in none["spec"]
    assert await change({"schedulingGates": gates}) == ["spec.schedulingGates[0].name", "spec.schedulingGates[1].name"]


async def test_an_immutable_config_map_stays(space: Space, name: str) -> None:
    (await space.create("configmaps", config_map(name) | {"immutable": True})).ok(201)
    assert await fields_of_refused_change(space, "configmaps", name, {"data": {"k": "2"}}) == ["data"]
    assert await fields_of_refused_change(space, "configmaps", name, {"immutable": False}) == ["immutable"]
    (await space.patch("configmaps", name, {"metadata": {"labels": {"a": "1"}}})).ok(200)


@pytest.mark.parametrize(
    "change",
    [{"uid": "11111111-2222-3333-4444-555555555555"}, {"creationTimestamp": "2001-01-01T00:00:00Z"}],
    ids=["uid", "time of creation"],
)
async def test_identity_stays(space: Space, name: str, change: Object) -> None:
    made = (await space.create("configmaps", config_map(name))).ok(201)
    # A wrong uid is refused and a wrong time is overlooked; neither is taken.
    assert (await space.patch("configmaps", name, {"metadata": change})).status in (200, 409, 422)
    assert (await space.get("configmaps", name)).ok(200) == made


def service(name: str, **spec: str) -> Object:
    ports = [{"port": 80, "protocol": "TCP"}]
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"ports": ports, **spec}}


async def test_two_services_cannot_have_one_address(space: Space) -> None:
    taken = (await space.create("services", service("a"))).ok(201)["spec"]["clusterIP"]
    refusal = (await space.create("services", service("b", clusterIP=taken))).refused(422, "Invalid")
    assert problems(refusal) == {("spec.clusterIPs", INVALID)}
    assert "provided IP is already allocated" in refusal["message"]
    (await space.delete("services", "a")).ok(200)
    assert (await space.create("services", service("b", clusterIP=taken))).ok(201)["spec"]["clusterIP"] == taken


async def test_a_services_address_is_of_the_clusters_range(space: Space, name: str) -> None:
    refusal = (await space.create("services", service(name, clusterIP="192.0.2.7"))).refused(422, "Invalid")
    assert problems(refusal) == {("spec.clusterIPs", INVALID)}
    # Kubernetes 1.20 puts it in words of its own, around the same ones.
    assert re.search(r"failed to allocated? (IP |ip:)192\.0\.2\.7", refusal["message"])
    refusal = (await space.create("services", service(name, clusterIP="nowhere"))).refused(422, "Invalid")
    assert ("spec.clusterIPs[0]", INVALID) in problems(refusal)


async def test_a_service_keeps_its_address(space: Space, name: str, version: Version) -> None:
    made = (await space.create("services", service(name))).ok(201)
    address = made["spec"]["clusterIP"]
    head, _, last = address.rpartition(".")
    other = {"spec": {"clusterIP": f"{head}.{(int(last) + 1) % 250}"}}
    assert await fields_of_refused_change(space, "services", name, other) == ["spec.clusterIPs[0]"]
    without = service(name)
    without["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"]
    without["metadata"]["labels"] = {"a": "b"}
    answer = await space.replace("services", without)
    if version > (1, 20):
        assert answer.ok(200)["metadata"]["labels"] == {"a": "b"}
    else:
        # It takes a replacement without an address for the wish to have none.
        assert problems(answer.refused(422, "Invalid")) == {("spec.clusterIPs[0]", INVALID)}
    kept = (await space.get("services", name)).ok(200)["spec"]
    assert (kept["clusterIP"], kept["clusterIPs"]) == (address, [address])
