"""Names that can never work are refused when they are saved: device resources of tiers, images of environments."""

import pytest
from django.core.exceptions import ValidationError

from grid.models.fields import validate_device_resource, validate_image


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
