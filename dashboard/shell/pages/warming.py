"""Keeps warm what the first visitors of live pages would wait for, after a start and after a time without visitors.

Each page says in `warm_up` what that is. It asks again and again, because a runtime is filled after its start."""

import asyncio
from collections.abc import Iterable
from typing import Any

from dashboard.shell.pages.page import LivePage
from grid.runtime import Runtime

WARMED_SECONDS = 1.0  # between two looks whether what is kept is there


async def keep_warm(pages: Iterable[LivePage[Any, Any]], runtime: Runtime) -> None:
    """Do so for ever, from when all has been read."""
    while True:
        if runtime.executions.are_read and runtime.freshness().synced:
            for page in pages:
                await page.warm_up(runtime)
        await asyncio.sleep(WARMED_SECONDS)
