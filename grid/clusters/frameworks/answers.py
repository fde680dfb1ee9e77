"""Reads a head's answers over HTTP. The head is user code: it may send without end, or redirect the caller.

Callers pass `allow_redirects=False`, so that nobody leads the controller to addresses that only the controller can reach.
"""

from functools import lru_cache

import aiohttp
import msgspec
from yarl import URL

from grid.clusters.frameworks.base import FrameworkSilent

LONGEST = 8 * 2**20
# What msgspec raises for a body that is not the expected JSON, is no text, or is nested too deeply.
UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


@lru_cache(maxsize=4096)  # reading one takes as long as a tenth of asking
def parsed(url: str) -> URL:
    """Return the URL as aiohttp takes it. Not for URLs of which user code chooses a part: they could be of any length and number."""
    return URL(url)


async def body_of(response: aiohttp.ClientResponse, *, too_long: str, longest: int = LONGEST) -> bytes:
    """Return the whole answer. Raise FrameworkSilent with the sentence `too_long`, which names the MiB, when it is longer than `longest`
    bytes, and aiohttp's own errors."""
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > longest:
            raise FrameworkSilent(too_long.format(size=longest // 2**20))
    return bytes(body)
