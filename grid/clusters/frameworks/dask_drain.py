"""Program for a Dask worker's container, run there with `python -P -c` before the worker is ended; nothing of ours imports it.

It retires the worker: Dask gives it no new task and copies its results to other workers; running tasks are waited for, and their results
copied too. It takes the drain time at most, and five seconds to say goodbye of the fifteen that a worker has besides. Running it twice
changes nothing. When the head is gone it ends at once: nobody is left to save results for. It fails, which Kubernetes shows as an event, if
something has to be computed again.
"""

import asyncio
import os
import sys
from typing import Any

from distributed import Client  # type: ignore[import-not-found]

CONNECT_SECONDS = 10.0
LOOK_SECONDS = 0.05
RETRY_SECONDS = 1.0
LAST_SECONDS = 5.0


async def finish_running_tasks(dask_worker: Any) -> set[Any]:
    """Wait, inside the retired worker, until it runs nothing; return the tasks that it never began."""
    state = dask_worker.state
    while dask_worker.status.name != "closing_gracefully" or state.executing or state.long_running:  # noqa: ASYNC110 Dask has no event for it
        await asyncio.sleep(LOOK_SECONDS)
    done = ("memory", "error", "released", "forgotten")
    return {key for key, task in state.tasks.items() if task.state not in done}


async def retire(client: Any, worker: str) -> None:
    while worker in await client.nthreads():
        if not await client.retire_workers([worker], close_workers=False, remove=False):
            # No worker can take its results now; a replacement may still start.
            await asyncio.sleep(RETRY_SECONDS)
            continue
        never_begun = (await client.run(finish_running_tasks, workers=[worker]))[worker]
        # The head must know of every task that ended, or it would run it again elsewhere.
        while not set((await client.processing([worker])).get(worker, ())) <= never_begun:  # noqa: ASYNC110
            await asyncio.sleep(LOOK_SECONDS)
        if await leave(client, worker):
            return


async def leave(client: Any, worker: str) -> bool:
    """Remove the worker on purpose, so that the head gives tasks that never began to others and blames no task for the worker's end."""
    return bool(await client.retire_workers([worker], close_workers=False, remove=True))


async def drain(head: str, worker: str, seconds: float) -> bool:
    """Return True when nothing is lost. Ends LAST_SECONDS after its time whatever hangs, because the worker is killed soon after. Raise
    OSError when the head is never reached."""
    end = asyncio.get_running_loop().time() + seconds
    saved: bool | None = None
    try:
        async with asyncio.timeout_at(end + LAST_SECONDS):
            # Dask tries again and again to connect; a head that is gone refuses at once.
            async with asyncio.timeout(CONNECT_SECONDS):
                _, writer = await asyncio.open_connection(*head.removeprefix("tcp://").split(":"))
            writer.close()
            client = await Client(head, asynchronous=True, set_as_default=False, timeout=CONNECT_SECONDS)
            saved = await retire_until(end, client, worker)
            if not saved:
                await leave(client, worker)
            await client.close()  # not after a timeout: it could hang like everything else
    except TimeoutError:
        if saved is None:
            raise
    return bool(saved)


async def retire_until(end: float, client: Any, worker: str) -> bool:
    try:
        async with asyncio.timeout_at(end):
            await retire(client, worker)
    except TimeoutError:
        return False
    return True


def main() -> None:
    head, worker = os.environ["DASK_SCHEDULER_ADDRESS"], f"tcp://{os.environ['POD_IP']}:{sys.argv[1]}"
    try:
        saved = asyncio.run(drain(head, worker, float(sys.argv[2])))
    except OSError:  # includes Dask's communication errors and timeouts
        return  # the head does not answer: there is nobody to save results for
    if not saved:
        sys.exit(
            "The drain time was over before all tasks had ended and all results were copied; Dask computes them again."
        )


if __name__ == "__main__":
    main()
