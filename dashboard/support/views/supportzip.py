"""Writes the zip of a support bundle: one file after the other, each bounded, and at the end what is in it and what is missing and why."""

import asyncio
import io
import zipfile
from collections.abc import Awaitable
from datetime import datetime

from django.db import DatabaseError

from dashboard.shell.views.fetching import problem_of
from grid.core.errors import GridError
from grid.core.quantity import format_bytes
from grid.core.translation import gettext as _
from grid.edge import textwork
from grid.edge.textwork import TextWorkFailed
from grid.kube.redaction import Redactor

MOST_OF_A_FILE = 2 * 2**20  # bytes; of logs the end is kept
MOST_IN_ALL = 32 * 2**20  # before compression, which makes a tenth of logs
SECONDS = 30.0  # for all that is asked of the cluster
CONTENTS = "CONTENTS.txt"


_SILENT = _("The database did not answer.")


def whole_lines(text: str, most: int, *, keeps_end: bool) -> str:
    """Return the last or first whole lines within so many characters: of a line that is cut, a secret would not be known as one."""
    if len(text) <= most:
        return text
    return text[-most:].partition("\n")[2] if keeps_end else text[:most].rpartition("\n")[0]


class SupportZip:
    """A bundle that is being made; `deadline` is the loop's time after which nothing more is asked of the cluster."""

    def __init__(self, title: str, redactor: Redactor, *, now: datetime, deadline: float) -> None:
        self.redactor = redactor
        self._title, self._now, self._deadline = title, now, deadline
        self._file = io.BytesIO()
        self._zip = zipfile.ZipFile(self._file, "w", zipfile.ZIP_DEFLATED)
        self._lines: list[str] = []
        self._missing: list[str] = []
        self._size = 0

    async def add(
        self, path: str, what: str, read: Awaitable[str], *, keeps_end: bool = False, is_ours: bool = False
    ) -> None:
        """Add what `read` returns without its secrets, or the reason why it is missing. What is ours, from the database or this process,
        does not share the time of what is asked of the cluster."""
        try:
            deadline = asyncio.get_running_loop().time() + SECONDS if is_ours else self._deadline
            async with asyncio.timeout_at(deadline):
                text = await read
        except (GridError, TimeoutError) as error:
            self.miss(path, what, _SILENT if is_ours else problem_of(error))
        except DatabaseError:
            self.miss(path, what, _SILENT)
        else:
            await self._write(path, what, text, keeps_end)

    def miss(self, path: str, what: str, why: str) -> None:
        self._missing.append(f"{path}: {what}. {self.redactor.text(why)}")

    async def _write(self, path: str, what: str, text: str, keeps_end: bool) -> None:
        # Cut before it is searched, so that a log of a gigabyte costs no more than what is kept of it.
        cut = whole_lines(text, MOST_OF_A_FILE, keeps_end=keeps_end)
        try:
            redacted = await textwork.workers.run(self.redactor.text, cut, size=len(cut))
        except TextWorkFailed as error:
            self.miss(path, what, str(error))
            return
        kept = redacted.encode(errors="replace")
        if self._size + len(kept) > MOST_IN_ALL:
            size = format_bytes(MOST_IN_ALL)
            self.miss(path, what, _("The bundle is full: it takes {size} before compression.", size=size))
            return
        self._size += len(kept)
        await asyncio.to_thread(self._zip.writestr, path, kept)
        if len(cut) < len(text):
            words = _("{what}, the last {size}") if keeps_end else _("{what}, the first {size}")
            what = words.format(what=what, size=format_bytes(MOST_OF_A_FILE))
        self._lines.append(f"{path}: {what} ({format_bytes(len(kept))})")

    async def finished(self) -> bytes:
        return await asyncio.to_thread(self._finished)

    def _finished(self) -> bytes:
        parts = [
            self._title,
            _("Made on {now:%Y-%m-%d at %H:%M:%S} UTC.", now=self._now),
            _(
                "Values of variables, Secrets, passwords and tokens are replaced by (hidden), as far as their place or their form says\n"
                "what they are. A program may have printed others: read the logs before you give them away."
            ),
            "",
            _("In it:"),
            *self._lines,
            "",
            _("Missing:"),
            *(self._missing or [_("nothing")]),
            "",
        ]
        self._zip.writestr(CONTENTS, "\n".join(parts))
        self._zip.close()
        return self._file.getvalue()
