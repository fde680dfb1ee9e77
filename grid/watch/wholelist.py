"""Reads all objects of one kind once, in pages, for whoever needs them so seldom that a watch would cost more."""

import asyncio
from typing import TypeVar

from grid.errors import ClusterUnavailable
from grid.kube.api import Followable
from grid.kube.objects import Volume, VolumeClaim
from grid.kube.resources import VOLUME_CLAIMS, VOLUMES, Resource
from grid.watch.decoding import Codec
from grid.watch.store import HasMetadata

T = TypeVar("T", bound=HasMetadata)

PAGE_SIZE = 500  # 2 MB of pods: 10 ms to decode, so the loop stays free


async def read_all(
    api: Followable,
    resource: Resource,
    kind: type[T],
    *,
    namespace: str = "",
    field_selector: str = "",
    most: int = 0,
) -> list[T]:
    """Return the objects. Raise errors of `grid.errors`; ClusterUnavailable also for more than `most` objects, if that is given."""
    codec, found, token = Codec(kind), list[T](), ""
    while True:
        body = await api.list_page(
            resource, namespace=namespace, field_selector=field_selector, limit=PAGE_SIZE, continue_token=token
        )
        page = codec.page(body)
        for chunk in page.chunks:
            found += chunk
            await asyncio.sleep(0)
        token = page.continue_token
        if not token:
            return found
        if most and len(found) >= most:
            raise ClusterUnavailable(f"There are more than {most:,} {resource.plural}.")


async def read_claims(api: Followable, namespace: str) -> dict[str, VolumeClaim]:
    """Return the claims of the namespace by `namespace/name`. Raise errors of `grid.errors`."""
    return {one.metadata.key: one for one in await read_all(api, VOLUME_CLAIMS, VolumeClaim, namespace=namespace)}


async def read_volumes(api: Followable) -> dict[str, Volume]:
    """Return all volumes by name. Raise errors of `grid.errors`."""
    return {one.metadata.key: one for one in await read_all(api, VOLUMES, Volume)}
