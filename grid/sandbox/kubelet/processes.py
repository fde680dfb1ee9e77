"""Processes of this machine: their identity, whether they are alive, and signals that never hit another process.

A process number is reused after its process ended, so a process is identified by its number, its start in clock ticks and the
boot it belongs to; signals go through a pidfd that was opened before the start was compared.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from grid.sandbox.kubelet.shim import boot_id, read_stat

_POLL_SECONDS = 0.2
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TICK_NANOSECONDS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Process:
    boot_id: str
    pid: int
    start_ticks: int

    def alive(self) -> bool:
        stat = read_stat(self.pid)
        return stat is not None and stat[1] == self.start_ticks and self.boot_id == boot_id()

    def signal(self, number: signal.Signals) -> bool:
        """Send a signal; return True when the process was alive to receive it."""
        with contextlib.suppress(OSError):
            handle = os.pidfd_open(self.pid)
            try:
                if self.alive():
                    signal.pidfd_send_signal(handle, number)
                    return True
            finally:
                os.close(handle)
        return False

    async def gone(self) -> None:
        """Return once the process has ended, whether it is a child of this one or not."""
        try:
            handle = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return
        except OSError:  # no more descriptors
            while self.alive():  # noqa: ASYNC110  there is no other way to know
                await asyncio.sleep(_POLL_SECONDS)
            return
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        try:
            if self.alive():
                loop.add_reader(handle, ended.set)
                await ended.wait()
        finally:
            loop.remove_reader(handle)
            os.close(handle)


def with_variable(name: str, value: str) -> list[Process]:
    """Return the processes that have this variable in their environment, by inheritance or not."""
    wanted = f"{name}={value}".encode()
    processes = []
    boot = boot_id()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            stat = read_stat(int(entry.name))
            if stat is not None and wanted in (entry / "environ").read_bytes().split(b"\0"):
                processes.append(Process(boot, int(entry.name), stat[1]))
    return processes


@dataclass(frozen=True, slots=True)
class TableRow:
    parent: int
    start_ticks: int
    cpu_nanoseconds: int  # its own, and that of the children it has waited for
    memory_bytes: int


def process_table() -> dict[int, TableRow]:
    """Return all processes of the machine by number; one pass over /proc serves every container."""
    table: dict[int, TableRow] = {}
    for entry in os.listdir("/proc"):  # noqa: PTH208  twice a second over hundreds of entries: names, not Paths
        if not entry.isdigit():
            continue
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{entry}/stat").read_bytes().rpartition(b")")[2].split()
            table[int(entry)] = TableRow(
                parent=int(fields[1]),
                start_ticks=int(fields[19]),
                cpu_nanoseconds=sum(int(ticks) for ticks in fields[11:15]) * _TICK_NANOSECONDS,
                memory_bytes=int(fields[21]) * _PAGE_BYTES,
            )
    return table


def disk_bytes(pids: Iterable[int]) -> tuple[int, int] | None:
    """Return the bytes that processes, and the children that they waited for, had read from disks and written to them; None when the system
    does not tell of any of them."""
    read = written = 0
    is_known = False
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, KeyError):
            lines = Path(f"/proc/{pid}/io").read_text().splitlines()
            figures = dict(line.split(": ") for line in lines)
            read += int(figures["read_bytes"])
            written += max(0, int(figures["write_bytes"]) - int(figures["cancelled_write_bytes"]))
            is_known = True
    return (read, written) if is_known else None


def trees(table: dict[int, TableRow], roots: list[int]) -> dict[int, list[int]]:
    """Return, for each root, the numbers of the processes below it."""
    children: dict[int, list[int]] = {}
    for pid, row in table.items():
        children.setdefault(row.parent, []).append(pid)
    pids_by_root: dict[int, list[int]] = {}
    for root in roots:
        below: list[int] = []
        waiting = list(children.get(root, ()))
        while waiting:
            pid = waiting.pop()
            below.append(pid)
            waiting.extend(children.get(pid, ()))
        pids_by_root[root] = below
    return pids_by_root


def proportional_bytes(pids: list[int]) -> int:
    """Return the memory of processes with shared pages counted once. Slower than the resident size, so used in doubt only."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
                    break
    return total
