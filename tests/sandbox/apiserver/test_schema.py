"""The schema is Kubernetes' own: the official client knows the same fields, and objects are decoded by them."""

from typing import Any

import pytest
from kubernetes import client

from grid.sandbox.apiserver.kinds import stored_kinds
from grid.sandbox.apiserver.quantities import canonical_text
from grid.sandbox.apiserver.schema import SCHEMA, conform
from grid.sandbox.apiserver.status import Failure

_MODELS = {
    "ConfigMap": "V1ConfigMap",
    "Container": "V1Container",
    "Deployment": "V1Deployment",
    "DeploymentSpec": "V1DeploymentSpec",
    "Event": "CoreV1Event",
    "HorizontalPodAutoscalerSpec": "V2HorizontalPodAutoscalerSpec",
    "Endpoint": "V1Endpoint",
    "EndpointSlice": "V1EndpointSlice",
    "JobStatus": "V1JobStatus",
    "LeaseSpec": "V1LeaseSpec",
    "NodeSpec": "V1NodeSpec",
    "NodeStatus": "V1NodeStatus",
    "ObjectMeta": "V1ObjectMeta",
    "PersistentVolumeClaimSpec": "V1PersistentVolumeClaimSpec",
    "PodDisruptionBudgetSpec": "V1PodDisruptionBudgetSpec",
    "PodSpec": "V1PodSpec",
    "PodStatus": "V1PodStatus",
    "ReplicaSetSpec": "V1ReplicaSetSpec",
    "ResourceQuotaSpec": "V1ResourceQuotaSpec",
    "Secret": "V1Secret",
    "ServiceSpec": "V1ServiceSpec",
    "Volume": "V1Volume",
}


@pytest.mark.parametrize(("name", "model"), _MODELS.items())
def test_the_schema_has_the_fields_of_the_official_client(name: str, model: str) -> None:
    known = next(value for key, value in vars(getattr(client, model)).items() if key.endswith("__properties"))
    assert sorted(SCHEMA.types[name]) == sorted(known)


def test_every_struct_that_is_named_is_described() -> None:
    named = {field.type for fields in SCHEMA.types.values() for field in fields.values() if field.is_struct}
    assert named <= set(SCHEMA.types)
    assert {kind.kind for kind in stored_kinds().values()} <= set(SCHEMA.types)


def test_protobuf_field_numbers_are_unique_per_struct() -> None:
    for name, fields in SCHEMA.types.items():
        numbers = [field.numbers for field in fields.values() if field.numbers]
        assert len(numbers) == len(set(numbers)), name


def pod(**spec: Any) -> dict[str, Any]:
    return {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}, "spec": spec}


def test_unknown_fields_are_dropped_and_reported_with_their_path() -> None:
    given = pod(containers=[{"name": "a", "imagePullPolcy": "Always"}], nodName="x")
    assert conform(stored_kinds()["pods"], given) == ["spec.containers[0].imagePullPolcy", "spec.nodName"]
    assert given["spec"] == {"containers": [{"name": "a"}]}


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (
            {"containers": {}},
            "cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container",
        ),
        (
            {"containers": ["a"]},
            "cannot unmarshal string into Go struct field PodSpec.spec.containers of type v1.Container",
        ),
        ({"priority": True}, "cannot unmarshal bool into Go struct field PodSpec.spec.priority of type int32"),
        ({"overhead": {"cpu": "lots"}}, "quantities must match the regular expression"),
    ],
)
def test_wrong_type_is_refused_in_words_of_go(spec: dict[str, Any], problem: str) -> None:
    with pytest.raises(Failure) as refused:
        conform(stored_kinds()["pods"], pod(**spec))
    assert refused.value.code == 400
    assert problem in refused.value.message


@pytest.mark.parametrize(
    ("text", "canonical"),
    [("0.5", "500m"), ("1000m", "1"), ("1.5Gi", "1536Mi"), ("0", "0"), ("-1", "-1"), ("1e3", "1k"), ("0.0001", "100u")],
)
def test_quantities_get_their_one_form(text: str, canonical: str) -> None:
    assert canonical_text(text) == canonical
