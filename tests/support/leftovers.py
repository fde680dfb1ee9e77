"""What a test may not leave behind: tasks, child processes, and open sockets and pipes.

Found in the test that left it. Otherwise Python says so when it collects the garbage, in whatever test runs then.
"""

import asyncio
import gc
import os
import time
from collections import Counter
from collections.abc import Iterator, Set
from contextlib import contextmanager, suppress
from pathlib import Path

from django.conf import settings

_PROC = Path("/proc/self")
_PATIENCE = 5.0  # seconds


async def no_task_is_left(*, patience: float = _PATIENCE) -> None:
    """Tasks that were cancelled and not awaited, by aiohttp for one, have a moment to end."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    if left:
        _, left = await asyncio.wait(left, timeout=patience)
    assert not left, f"the test has left tasks: {left}"


@contextmanager
def nothing_is_left() -> Iterator[None]:
    # What is there already is no garbage: looking only through what the test makes costs milliseconds instead of seconds.
    gc.freeze()
    children, ends = _children(), _ends()
    yield
    gc.collect()
    left = _more(_children(), children)
    assert not left, f"the test has left processes: {[_command(pid) for pid in left]}"
    # The thread of a server may be a moment behind the client that it answered.
    until = time.monotonic() + _PATIENCE
    while (still_open := _more(_ends(), ends)) and time.monotonic() < until:
        time.sleep(0.02)
    assert not still_open, f"the test has left open: {sorted(still_open)}"


def _more(after: Counter[str], before: Counter[str]) -> Counter[str]:
    """What is new, if there is more than before: a test may replace what its module shares, such as a server that it kills."""
    return after - before if after.total() > before.total() else Counter()


def _children() -> Counter[str]:
    """By the system's files where there are some: psutil would look at every process of the machine."""
    leftovers: Counter[str] = Counter()
    for thread in _names("task"):
        with suppress(OSError):
            leftovers.update((_PROC / "task" / thread / "children").read_text().split())
    return leftovers


def _ends() -> Counter[str]:
    """The sockets and pipes that are open; not files, which libraries open once and keep, nor connections to a database's server,
    which Django keeps for each thread."""
    leftovers: Counter[str] = Counter()
    for descriptor in _names("fd"):
        with suppress(OSError):
            leftovers[os.readlink(f"/proc/self/fd/{descriptor}")] += 1  # noqa: PTH115  a Path takes four times as long
    kept = _connections_to(int(settings.DATABASES["default"]["PORT"] or 0))
    return Counter(
        {end: count for end, count in leftovers.items() if end.startswith(("socket:", "pipe:")) and end not in kept}
    )


def _connections_to(port: int) -> Set[str]:
    """Return the sockets of this process's connections to a port, as its file descriptors name them; none for port 0."""
    if not port:
        return set()
    # Columns of /proc/net/tcp: number, local address, remote address as hexadecimal ADDRESS:PORT, ..., the tenth is the inode.
    lines = [line.split() for line in (_PROC / "net" / "tcp").read_text().splitlines()[1:]]
    return {f"socket:[{line[9]}]" for line in lines if int(line[2].partition(":")[2], 16) == port}


def _names(folder: str) -> list[str]:
    with suppress(FileNotFoundError):  # not Linux
        return os.listdir(_PROC / folder)  # noqa: PTH208  names, not Paths: this runs twice a test
    return []


def _command(pid: str) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    return pid
