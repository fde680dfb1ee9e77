"""Whether a node has an image, as its kubelet reports."""

import pytest

from grid.diagnosis.nodeimages import REPORTED, ImageOnNodes, full_name, has_image, on_nodes, size_of
from grid.kube.objects import Node
from tests.support import builders
from tests.support.builders import decode


def node(*images: tuple[str, int]) -> Node:
    reported = [{"names": [name], "sizeBytes": size} for name, size in images]
    return decode(builders.node("a", status={"images": reported}), Node)


@pytest.mark.parametrize(
    ("image", "full"),
    [
        ("python", "docker.io/library/python:latest"),
        ("python:3.11", "docker.io/library/python:3.11"),
        ("team/lab", "docker.io/team/lab:latest"),
        ("registry:5000/lab", "registry:5000/lab:latest"),
        ("localhost/lab:1", "localhost/lab:1"),
        ("quay.io/team/lab@sha256:ab", "quay.io/team/lab@sha256:ab"),
    ],
)
def test_a_name_is_completed_as_runtimes_do(image: str, full: str) -> None:
    assert full_name(image) == full


def test_an_image_is_found_by_its_full_name() -> None:
    assert has_image(node(("docker.io/library/python:3.11", 5)), "python:3.11", None) is True
    assert has_image(node(("docker.io/library/python:3.12", 5)), "python:3.11", None) is False


def test_node_that_reports_no_image_is_unknown() -> None:
    assert has_image(node(), "python:3.11", 100) is None


def test_full_report_omits_only_images_smaller_than_all_listed() -> None:
    full = node(*((f"lab:{number}", 1000 + number) for number in range(REPORTED)))
    assert has_image(full, "python:3.11", 5000) is False
    assert has_image(full, "python:3.11", 500) is None
    assert has_image(full, "python:3.11", None) is None


def test_size_is_told_by_any_node_with_the_image() -> None:
    nodes = [node(("lab:1", 7)), node(("docker.io/library/python:3.11", 9))]
    assert size_of("python:3.11", nodes) == 9
    assert size_of("ruby:3", nodes) is None


def test_nodes_share_what_they_have() -> None:
    first, other = node(("lab:1", 7)), node(("lab:1", 7))
    assert first.status.images[0] is other.status.images[0]


def test_image_asked_by_two_names_is_counted_for_both() -> None:
    names = ("lab:1", "docker.io/library/lab:1", "ruby:3")
    counted = on_nodes(names, [node(("lab:1", 7)), node(("lab:1", 7)), node()])
    assert counted == dict.fromkeys(names[:2], ImageOnNodes(7, 2, 3)) | {"ruby:3": ImageOnNodes(nodes=3)}
