"""Fetches whole objects and logs from the cluster on request; an error becomes a sentence on the page."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from dataclasses import dataclass

from grid.errors import ClusterUnavailable, GridError, NotAllowed, NotFound, TooManyRequests

TIMEOUT_SECONDS = 10.0
LOG_LINES = 500
LOG_BYTES = 512 * 1024


@dataclass(frozen=True, slots=True)
class Fetched:
    """A fetched text, or in `problem` the reason why there is none."""

    text: str = ""
    problem: str = ""


async def fetched(text: Awaitable[str]) -> Fetched:
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            return Fetched(text=await text)
    except NotFound:
        return Fetched(problem="It is gone from the cluster, so there is nothing to fetch.")
    except NotAllowed:
        return Fetched(problem="The dashboard's account may not read this. An admin of the cluster has to allow it.")
    except (ClusterUnavailable, TooManyRequests, TimeoutError):
        return Fetched(problem="The cluster did not answer. Reload this page in a few seconds.")
    except GridError as error:
        return Fetched(problem=f"The cluster refused: {error}")


async def log_tail(chunks: AsyncIterator[bytes]) -> str:
    """Return the end of a log: at most its last `LOG_BYTES`."""
    kept = b""
    async for chunk in chunks:
        kept = (kept + chunk)[-LOG_BYTES:]
    return kept.decode("utf-8", errors="replace")
