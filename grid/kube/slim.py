"""The base of the slim typed views in `grid.kube.objects`, and views of small parts: what kubelets report of their nodes, and the
reporters of events."""

from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache

import msgspec


class Slim(msgspec.Struct, frozen=True, rename="camel", kw_only=True, gc=False):
    """The base of all views: immutable, camelCase on the wire, unknown fields skipped."""


class EventSource(Slim, frozen=True, kw_only=True):
    component: str = ""
    host: str = ""


class EventSeries(Slim, frozen=True, kw_only=True):
    count: int = 0
    last_observed_time: datetime | None = None


class NodeInfo(Slim, frozen=True, kw_only=True):
    kubelet_version: str = ""
    os_image: str = ""
    container_runtime_version: str = ""


class NodeImage(Slim, frozen=True, kw_only=True):
    names: tuple[str, ...] | None = None
    size_bytes: int = 0


def shared(images: Iterable[NodeImage]) -> tuple[NodeImage, ...]:
    """Return the images, each as one object however many nodes have it."""
    return tuple([_one(image) for image in images])


@lru_cache(maxsize=8192)
def _one(image: NodeImage) -> NodeImage:
    return image
