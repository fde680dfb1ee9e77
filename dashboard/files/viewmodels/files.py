"""The pages of a project's files in Git: folders, files and commits; pure."""

import codecs
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlencode

from grid.core.quantity import format_bytes
from grid.core.translation import gettext as _
from grid.files.repositories import TreeEntry

SHOWN_BYTES = 256 * 2**10
SHOWN_ENTRIES = 1000
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_BINARY_WITHIN = 8 * 2**10
# What browsers draw without running anything that is in it; an SVG can hold scripts, so it is text.
IMAGE_TYPES = {".jpg": "image/jpeg", **{f".{kind}": f"image/{kind}" for kind in ("png", "jpeg", "gif", "webp")}}
SHOWN_IMAGE_BYTES = 20 * 2**20


def _query(at: str, path: str) -> str:
    return urlencode({"at": at, **({"path": path} if path else {})})


@dataclass(frozen=True, slots=True)
class Place:
    """A path at a branch or commit; `commit` is the one that it means now. `here` and `pinned` are queries of URLs."""

    at: str
    commit: str
    path: str
    is_branch: bool

    def query(self, path: str = "") -> str:
        """Return the part of a URL behind the question mark for another path, without one for the root."""
        return _query(self.at, path)

    @property
    def here(self) -> str:
        return self.query(self.path)

    @property
    def pinned(self) -> str:
        """The same path, and the same commit whatever is pushed meanwhile."""
        return _query(self.commit, self.path)

    @property
    def crumbs(self) -> list[tuple[str, str]]:
        """The names of the folders on the way with their queries, without the last one's own."""
        parts = self.path.split("/")[:-1] if self.path else []
        return [(part, self.query("/".join(parts[: number + 1]))) for number, part in enumerate(parts)]

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class FileRow:
    """`query` is "" for what cannot be opened here; `note` says why, or what else it is."""

    name: str
    query: str
    is_folder: bool
    size: str
    note: str


@dataclass(frozen=True, slots=True)
class Folder:
    rows: tuple[FileRow, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class ShownFile:
    """How a file is shown; `note` says why it is not, or not whole."""

    kind: Literal["text", "image", "nothing"]
    size: str
    text: str = ""
    note: str = ""


def folder(place: Place, entries: Sequence[TreeEntry]) -> Folder:
    rows = tuple(_row(place, entry) for entry in entries[:SHOWN_ENTRIES])
    return Folder(rows, max(0, len(entries) - SHOWN_ENTRIES))


def _row(place: Place, entry: TreeEntry) -> FileRow:
    path = f"{place.path}/{entry.name}" if place.path else entry.name
    note = _("link") if entry.is_link else ""
    if entry.is_module:
        note = _("another repository; its files are not here")
    elif not entry.name:
        note = _("its name is not UTF-8, so it cannot be opened here")
    opens = entry.name and not entry.is_module
    size = "" if entry.is_folder or entry.is_module else format_bytes(entry.size)
    return FileRow(entry.shown, place.query(path) if opens else "", entry.is_folder, size, note)


def file(name: str, entry: TreeEntry, head: bytes) -> ShownFile:
    """Return how to show a file; `head` is its beginning, at most `SHOWN_BYTES` of it."""
    size = format_bytes(entry.size)
    if entry.is_link:
        return ShownFile(
            "text", size, head.decode(errors="replace"), _("A link; it is not followed here. It leads to:")
        )
    if image_type(name):
        if entry.size <= SHOWN_IMAGE_BYTES:
            return ShownFile("image", size)
        note = _("Images over {shown_image_bytes} are not shown. Download it.")
        return ShownFile("nothing", size, note=note.format(shown_image_bytes=format_bytes(SHOWN_IMAGE_BYTES)))
    if not head.startswith(_UTF_16) and b"\0" in head[:_BINARY_WITHIN]:
        return ShownFile("nothing", size, note=_("This is not text. Download it to open it."))
    if not entry.size:
        return ShownFile("nothing", size, note=_("This file is empty."))
    cut = _("Only the first {shown_bytes} are shown. Download it for the rest.", shown_bytes=format_bytes(SHOWN_BYTES))
    text, encoding = _decoded(head, is_cut=entry.size > len(head))
    return ShownFile("text", size, text, " ".join(filter(None, (encoding, cut if entry.size > len(head) else ""))))


def image_type(name: str) -> str:
    """Return the type of an image that may be shown; "" for anything else."""
    return IMAGE_TYPES.get(name[name.rfind(".") :].lower() if "." in name else "", "")


def _decoded(head: bytes, *, is_cut: bool) -> tuple[str, str]:
    """Return the text and a note on its encoding, "" for UTF-8; what is cut off is no part of a character."""
    if head.startswith(_UTF_16):
        text = codecs.getincrementaldecoder("utf-16")(errors="replace").decode(head, final=not is_cut)
        return text, _("It is UTF-16, and shown as that; programs that expect UTF-8 do not read it.")
    try:
        return codecs.getincrementaldecoder("utf-8-sig")().decode(head, final=not is_cut), ""
    except UnicodeDecodeError:
        pass
    try:
        # What Excel writes in the west; a text of another encoding looks wrong in it, so the page says which was taken.
        western = _("It is not UTF-8: it is shown as Windows-1252. Programs that expect UTF-8 do not read it.")
        return head.decode("cp1252"), western
    except UnicodeDecodeError:
        return head.decode(errors="replace"), _(
            "It is not UTF-8: what could not be read is shown as �. Download it to open it."
        )
