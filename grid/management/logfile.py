"""Writes a program's output to files of bounded size: NAME.log, and NAME.log.1 to .3 for older output.

The program prints into a pipe, because a file that it holds open itself cannot be rotated without losing lines.
"""

import contextlib
import logging
import os
import threading
from logging.handlers import RotatingFileHandler
from pathlib import Path

FILE_BYTES, OLDER_FILES = 5 * 2**20, 3
_LONGEST_LINE = 64 * 1024
_DRAIN_SECONDS = 2.0


class _Lines(RotatingFileHandler):
    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  logging's name
        """Ignore the error: a full disk loses lines, but must not block or end the program that prints them."""


class LogFile:
    """Copies what is printed into `input` to the file until every writer has closed it; then `close` returns."""

    def __init__(self, path: Path, *, file_bytes: int = FILE_BYTES, older_files: int = OLDER_FILES) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Opened with the first line, where a full disk is no error.
        self._lines = _Lines(path, maxBytes=file_bytes, backupCount=older_files, encoding="utf-8", delay=True)
        self._output, self.input = os.pipe()
        self._thread = threading.Thread(target=self._copy, name=f"log {path.name}", daemon=True)

    def start(self) -> None:
        """Start copying, once the program has its end of the pipe: ours is closed, so that the end of the program's is noticed."""
        os.close(self.input)
        self._thread.start()

    def close(self, *, within: float = _DRAIN_SECONDS) -> None:
        """Wait for the rest, at most `within` seconds, because a process that the program left behind may hold the pipe."""
        self._thread.join(within)

    def _copy(self) -> None:
        rest = b""
        with os.fdopen(self._output, "rb", buffering=0) as output:
            while data := output.read(_LONGEST_LINE):
                *lines, rest = (rest + data).split(b"\n")
                if len(rest) > _LONGEST_LINE:
                    lines, rest = [*lines, rest], b""
                for line in lines:
                    self._write(line)
        if rest:
            self._write(rest)
        with contextlib.suppress(OSError):
            self._lines.close()

    def _write(self, line: bytes) -> None:
        self._lines.handle(logging.makeLogRecord({"msg": line.decode(errors="replace")}))
