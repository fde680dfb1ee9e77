"""What a request to a program costs, counted in calls of our own functions: unlike seconds they are the same on each machine."""

import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import aiohttp

from tests.proxy.support import COOKIE

_ROOT = Path(__file__).parents[2]
_OURS = tuple(f"{_ROOT / name}/" for name in ("grid", "dashboard"))
_REQUESTS = 10
_MOST = 115  # half as many again took a third longer


async def test_request_calls_few_of_our_functions(browser: aiohttp.ClientSession) -> None:
    calls: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(_OURS):
            calls[frame.f_code.co_qualname] += 1

    await (await browser.get("/files", headers=COOKIE)).read()  # the first one makes what is kept
    sys.setprofile(count)
    try:
        for _ in range(_REQUESTS):
            await (await browser.get("/files", headers=COOKIE)).read()
    finally:
        sys.setprofile(None)
    assert calls["forward_http"] >= _REQUESTS
    assert calls.total() / _REQUESTS <= _MOST, calls.most_common()
