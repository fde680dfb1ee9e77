"""Reading what a head answers over HTTP. It is user code that answers: it may send without end, or send the asker elsewhere.

Callers ask with `allow_redirects=False`, so that nobody leads the controller to addresses that only the controller can reach.
"""

import aiohttp
import msgspec

from grid.launch.frameworks.base import FrameworkSilent

LONGEST = 8 * 2**20
# What msgspec raises for what is not JSON, or not the JSON that was expected: for text that is none, or that is nested without end, too.
UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


async def body_of(response: aiohttp.ClientResponse, *, of: str, longest: int = LONGEST) -> bytes:
    """The whole answer `of` somebody. Raises FrameworkSilent when it is longer, and what aiohttp raises."""
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > longest:
            raise FrameworkSilent(f"{of} answer is longer than {longest // 2**20} MiB.")
    return bytes(body)
