"""Whether a node has an image, as its kubelet reports, and what its pull adds to a start; pure.

A kubelet reports its largest images, fifty unless it is told otherwise. So an image that is not among fifty may be there all the same, if
it is no larger than the smallest of them.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache

from grid.core.quantity import format_bytes
from grid.core.translation import gettext as _
from grid.core.wording import about
from grid.kube.objects import Node
from grid.kube.slim import NodeImage

REPORTED = 50


@lru_cache(maxsize=8192)
def full_name(image: str) -> str:
    """Return an image's name with the registry, folder and tag that a container runtime adds: docker.io/library/python:3.11."""
    first, slash, _path = image.partition("/")
    if not slash:
        image = f"docker.io/library/{image}"
    elif "." not in first and ":" not in first and first != "localhost":
        image = f"docker.io/{image}"
    return image if ":" in image.rpartition("/")[2] or "@" in image else f"{image}:latest"


def image_on(node: Node, image: str) -> NodeImage | None:
    """Return the image as the node reports it; None when it does not."""
    asked = full_name(image)
    return next((each for each in node.status.images if asked in map(full_name, each.names or ())), None)


@dataclass(frozen=True, slots=True)
class ImageOnNodes:
    """How many nodes report an image, of how many that there are, and its size in bytes if any does."""

    size: int | None = None
    have: int = 0
    nodes: int = 0


def on_nodes(images: Collection[str], nodes: Collection[Node]) -> dict[str, ImageOnNodes]:
    """Return what the nodes report of each image, in one pass over them."""
    # Nodes share the objects of their images: names are compared once for each of them, not once for each node.
    reported = {id(image): image for node in nodes for image in node.status.images}
    counted = Counter(id(image) for node in nodes for image in node.status.images)
    by_name = {full_name(image): ImageOnNodes(nodes=len(nodes)) for image in images}
    for key, image in reported.items():
        for name in {full_name(name) for name in image.names or ()} & by_name.keys():
            known = by_name[name]
            by_name[name] = ImageOnNodes(known.size or image.size_bytes or None, known.have + counted[key], len(nodes))
    return {image: by_name[full_name(image)] for image in images}


def has_image(node: Node, image: str, size: int | None) -> bool | None:
    """Return whether the image, of `size` bytes if that is known, is on the node; None when its report does not tell."""
    if image_on(node, image) is not None:
        return True
    return False if reports_all(node, size) else None


def reports_all(node: Node, size: int | None) -> bool:
    """Return whether the node would report an image of that size if it had it."""
    reported = node.status.images
    if len(reported) < REPORTED:
        return bool(reported)
    return size is not None and size > min(node_image.size_bytes for node_image in reported)


def size_of(image: str, nodes: Iterable[Node]) -> int | None:
    """Return the image's size in bytes from the first node that has it; None when none reports it."""
    reported = (image_on(node, image) for node in nodes)
    return next((each.size_bytes for each in reported if each is not None and each.size_bytes), None)


@dataclass(frozen=True, slots=True)
class ImagePull:
    """The pull of an image before a start: its size in bytes and the seconds that a pull of that size takes in this pool, None where that
    is not known. `is_missing` when none of the nodes that the launch may start on has it."""

    size: int | None = None
    seconds: float | None = None
    is_missing: bool = False

    def sentence(self, *, on_new_node: bool) -> str:
        """Return what the pull adds; "" when the image may be there, or nothing is known of a node that is still to be started."""
        image = _("Its image of {size}", size=format_bytes(self.size)) if self.size else _("Its image")
        takes = _("usually in about {seconds} here", seconds=about(self.seconds)) if self.seconds is not None else ""
        if on_new_node:
            return _("{image} is pulled on the new node, {time}.", image=image, time=takes) if takes else ""
        if not self.is_missing:
            return ""
        time = f", {takes}" if takes else ""
        return _("{image} is not on these nodes and is pulled first{time}.", image=image, time=time)
