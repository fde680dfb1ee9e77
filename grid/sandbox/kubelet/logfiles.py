"""Reading of containers' logs as the shim writes them: `log/0.log` is the newest file, `1.log` the one before it, and so on.

Lines are `<time> <stream> <F|P> <text>`; parts of one overlong line are marked P and are joined again. Times have a fixed width,
so they compare as texts.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

_POLL_SECONDS = 0.2
_CHUNK = 256 * 1024


@dataclass(frozen=True, slots=True)
class LogOptions:
    """The options of a client's request; the numbers are already validated."""

    follow: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    since: datetime | None = None
    limit_bytes: int | None = None


async def read_log(directory: Path, options: LogOptions, ended: Callable[[], bool]) -> AsyncIterator[bytes]:
    """Yield the log in pieces; with `follow`, until the container has ended and everything is read."""
    left = options.limit_bytes
    with _Cursor(directory) as cursor:
        if options.tail_lines is not None:
            cursor.go_to_tail(options.tail_lines)
        while True:
            # Checked before reading, so that everything written before the end is read.
            over = ended() or not options.follow
            raw = cursor.read()
            if not raw:
                if over:
                    return
                await asyncio.sleep(_POLL_SECONDS)
                continue
            data = _render(raw, options)
            if left is not None:
                data = data[:left]
                left -= len(data)
            if data:
                yield data
            if left == 0:
                return
            await asyncio.sleep(0)


def last_lines(directory: Path, count: int) -> list[str]:
    """Return the last lines of a finished log."""
    with _Cursor(directory) as cursor:
        cursor.go_to_tail(count)
        text = b""
        while chunk := cursor.read():
            text += _render(chunk, LogOptions())
    return text.decode(errors="replace").splitlines()


def _render(raw: bytes, options: LogOptions) -> bytes:
    since = _stamp(options.since) if options.since is not None else b""
    out = bytearray()
    for line in raw.split(b"\n")[:-1]:
        time, _, rest = line.partition(b" ")
        _, _, rest = rest.partition(b" ")
        tag, _, text = rest.partition(b" ")
        if time < since:
            continue
        if options.timestamps:
            out += time + b" "
        out += text if tag == b"P" and not options.timestamps else text + b"\n"
    return bytes(out)


def _stamp(moment: datetime) -> bytes:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z").encode()


class _Cursor:
    """A position in a log that survives rotation: an open file stays the same file under its next name."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._file: IO[bytes] | None = None
        self._rest = b""

    def __enter__(self) -> "_Cursor":
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def go_to_tail(self, count: int) -> None:
        """Move to where `count` lines remain, or to the start when there are fewer."""
        left = count
        for path in reversed(self._files()):
            offset, lines = _tail(path, left)
            left -= lines
            self._open(path)
            if self._file is not None:
                self._file.seek(offset)
            if left <= 0:
                return

    def read(self) -> bytes:
        """Return some of the unread lines, whole ones only, or b"" when there are none now."""
        while True:
            if self._file is None and not self._open_next():
                return b""
            data = self._file.read(_CHUNK) if self._file is not None else b""
            if not data:
                if not self._open_next():
                    return b""
                continue
            whole, newline, rest = (self._rest + data).rpartition(b"\n")
            self._rest = rest
            if newline:
                return whole + newline

    def _files(self) -> list[Path]:
        """Return the log files, oldest first."""
        numbered = [path for path in self._directory.glob("*.log") if path.stem.isdigit()]
        return sorted(numbered, key=lambda path: -int(path.stem))

    def _open(self, path: Path) -> bool:
        try:
            opened = path.open("rb", buffering=0)
        except OSError:
            return False
        if self._file is not None:
            self._file.close()
        self._file, self._rest = opened, b""
        return True

    def _open_next(self) -> bool:
        """Open the file that follows the open one, or the oldest when the open one was deleted; return False when there is none."""
        files = self._files()
        if self._file is None:
            return bool(files) and self._open(files[0])
        here = _inode(self._file)
        known = [number for number, path in enumerate(files) if path.exists() and path.stat().st_ino == here]
        position = known[0] + 1 if known else 0
        return position < len(files) and self._open(files[position])


def _inode(file: IO[bytes]) -> int:
    return os.fstat(file.fileno()).st_ino


def _tail(path: Path, count: int) -> tuple[int, int]:
    """Return the offset from which at most `count` lines of the file remain, and their number."""
    lines = 0
    with path.open("rb") as file:
        position = end = file.seek(0, 2)
        while position > 0:
            start = max(0, position - _CHUNK)
            file.seek(start)
            chunk = file.read(position - start)
            index = len(chunk)
            while (index := chunk.rfind(b"\n", 0, index)) >= 0:
                # The newline at the very end closes the last line; any other one closes the line before those counted.
                if start + index + 1 < end:
                    lines += 1
                    if lines == count:
                        return start + index + 1, lines
                elif count == 0:
                    return end, 0
            position = start
    return 0, lines + (1 if end else 0)
