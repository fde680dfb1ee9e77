"""The end of a container's log, as it is kept in the database."""

import asyncio
import logging

from grid.core.errors import ClusterUnavailable, GridError
from grid.kube.api import KubeApi
from grid.kube.objects import Pod

logger = logging.getLogger(__name__)

LOG_BYTES = 64 * 1024
LOG_LINES = 5000
LOG_SECONDS = 10.0


async def end_of_log(api: KubeApi, pod: Pod, container: str) -> str:
    """Return the end of the log, if there is any. Raise ClusterUnavailable while the pod may still be read, to be tried again."""
    kept = bytearray()
    try:
        async with asyncio.timeout(LOG_SECONDS):
            meta = pod.metadata
            async for chunk in api.logs(meta.name, namespace=meta.namespace, container=container, tail_lines=LOG_LINES):
                kept += chunk
                del kept[:-LOG_BYTES]
    except ClusterUnavailable:
        if pod.metadata.deletion_timestamp is None:
            raise
    except (GridError, TimeoutError) as error:
        # The container never ran, or its node is gone: no more of the log will come.
        logger.info("log not kept pod=%s reason=%s", pod.metadata.key, str(error) or "no answer in time")
    return kept.decode(errors="replace").replace("\x00", "")
