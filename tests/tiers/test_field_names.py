"""Names that can never work are refused when they are saved: device resources of tiers, images of environments."""

import pytest
from django.core.exceptions import ValidationError

from grid.models.fields import validate_device_resource, validate_image
from grid.tiers.oddsizes import odd_sizes


@pytest.mark.parametrize("name", ["nvidia.com/gpu", "nvidia.com/mig-2g.20gb", "gpu.intel.com/i915", "lab/Card_1"])
def test_device_resource_of_a_plugin_is_taken(name: str) -> None:
    validate_device_resource(name)


@pytest.mark.parametrize(
    "name",
    [
        "memory",
        "cpu",
        "lab.test/Card x",
        "card",
        "kubernetes.io/card",
        "a.kubernetes.io/card",
        "lab.test/a/b",
        "requests.lab.test/gpu",
        "",
    ],
)
def test_device_resource_that_kubernetes_refuses_is_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="with its domain"):
        validate_device_resource(name)


@pytest.mark.parametrize(
    "name",
    [
        "python",
        "lab:4",
        "reg.test/lab/train:3",
        "localhost:5000/lab/train_x/a--b:v1.2-rc.1",
        "reg.test/lab@sha256:" + "0a" * 32,
        "reg.test/lab:4@sha256:" + "0a" * 32,
        "compute-grid-built/lab:3",
    ],
)
def test_image_with_registry_tag_or_digest_is_taken(name: str) -> None:
    validate_image(name)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("https://reg.test/lab/train:3", "without https"),
        ("reg.test/lab train:3", "no name of an image"),
        ("reg.test/Lab:3", "lower-case"),
        ("lab:", "no name of an image"),
        ("lab@sha256:00", "no name of an image"),
        ("-lab", "no name of an image"),
    ],
)
def test_image_that_no_node_can_pull_is_refused(name: str, words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        validate_image(name)


@pytest.mark.parametrize(
    ("field", "text", "sentence"),
    [
        ("memory", "400m", "Memory: 400m is less than a byte. 400Mi or 400Gi may be meant."),
        ("memory_limit", "4", "Memory limit: 4 is 4 B. 4Mi or 4Gi may be meant."),
        ("shared_memory", "512k", "Shared memory: 512k is 500 KiB. 512Mi or 512Gi may be meant."),
        ("cores", "2000", "Cores: 2000 is 2,000 cores. 2000m, which is 2, may be meant."),
    ],
)
def test_size_with_a_slip_of_its_unit_is_doubted(field: str, text: str, sentence: str) -> None:
    assert odd_sizes({field: text, "ephemeral_storage": ""}) == [sentence]


def test_sizes_that_people_mean_are_not_doubted() -> None:
    assert odd_sizes({"memory": "64Mi", "shared_memory": "0", "cores": "64", "cores_limit": "500m"}) == []
