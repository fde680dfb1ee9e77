"""Reads all objects of one kind once, in pages, for whoever needs them so seldom that a watch would cost more."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import TypeVar

from grid.core.errors import GridError
from grid.kube.api import Followable
from grid.kube.decoding import Codec
from grid.kube.objects import StorageClass, Volume, VolumeClaim
from grid.kube.resources import STORAGE_CLASSES, VOLUME_CLAIMS, VOLUMES, Resource
from grid.kube.store import HasMetadata

logger = logging.getLogger(__name__)

T = TypeVar("T", bound=HasMetadata)

PAGE_SIZE = 500  # 2 MB of pods: 10 ms to decode, so the loop stays free


async def read_all(api: Followable, resource: Resource, kind: type[T], *, namespace: str = "") -> list[T]:
    """Return the objects. Raise errors of `grid.core.errors`."""
    return [obj async for chunk in read_chunks(api, resource, kind, namespace=namespace) for obj in chunk]


async def read_chunks(
    api: Followable, resource: Resource, kind: type[T], *, namespace: str = "", field_selector: str = ""
) -> AsyncIterator[Sequence[T]]:
    """Yield the objects a few at a time, so that whoever needs sums of them does not hold them all. Raise errors of `grid.core.errors`."""
    codec, token = Codec(kind), ""
    while True:
        body = await api.list_page(
            resource, namespace=namespace, field_selector=field_selector, limit=PAGE_SIZE, continue_token=token
        )
        page = codec.page(body)
        for chunk in page.chunks:
            yield chunk
            await asyncio.sleep(0)
        token = page.continue_token
        if not token:
            return


def _by_key(objects: Iterable[T]) -> dict[str, T]:
    return {obj.metadata.key: obj for obj in objects}


async def read_claims(api: Followable, namespace: str) -> dict[str, VolumeClaim]:
    """Return the claims of the namespace by `namespace/name`. Raise errors of `grid.core.errors`."""
    return _by_key(await read_all(api, VOLUME_CLAIMS, VolumeClaim, namespace=namespace))


async def read_volumes(api: Followable) -> dict[str, Volume]:
    """Return all volumes by name. Raise errors of `grid.core.errors`."""
    return _by_key(await read_all(api, VOLUMES, Volume))


async def read_classes(api: Followable) -> dict[str, StorageClass] | None:
    """Return all storage classes by name; None without the right to list them, or without an answer."""
    try:
        return _by_key(await read_all(api, STORAGE_CLASSES, StorageClass))
    except GridError as error:
        logger.debug("storage classes not listed reason=%s", error)
        return None
