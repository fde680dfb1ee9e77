"""A Jupyter notebook as a page shows it; pure. It is read as JSON and shown by our own template: none of it is HTML, and none of it runs.

Whoever wrote it may have written anything, so each field may have any type, and everything is counted and cut. It is decoded field by
field, and what is not shown is passed over without an object for it: a few MiB of `[],[],...` would otherwise become hundreds in memory,
and keep Python's lock for seconds.
"""

import codecs
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar, cast

import msgspec
from msgspec import Raw

from dashboard.logs.viewmodels.ansi import terminal_html
from grid.core.decoding import prepared
from grid.core.quantity import format_bytes
from grid.core.regexes import Expression
from grid.core.translation import gettext as _
from grid.core.wording import listed

NOTEBOOK_BYTES = 8 * 2**20
SHOWN_CELLS = 300
SHOWN_OUTPUTS = 20  # of a cell
SHOWN_TEXT = 32 * 2**10  # characters of a cell's text, or of an output
SHOWN_LINES = 2000  # of a text that is a list of its lines
ALL_TEXT = 2**20
SHOWN_IMAGES = 30
IMAGE_CHARACTERS = 3 * 2**20  # of an image in base64
# What base64 of a PNG and of a JPEG begins with.
_BEGINNINGS = {"image/png": "iVBORw0KGg", "image/jpeg": "/9j/"}
_BASE64 = Expression(r"[A-Za-z0-9+/]+={0,2}")
_NOT_SHOWN = {
    "text/html": "HTML",
    "image/svg+xml": "SVG",
    "application/javascript": "JavaScript",
    "text/javascript": "JavaScript",
    "application/vnd.plotly.v1+json": "Plotly",
    "application/vnd.bokehjs_exec.v0+json": "Bokeh",
    "application/vnd.jupyter.widget-view+json": "widget",
}
_CUT = _("… cut here; download the notebook for the rest.")
_PIECE = 2**16
_MARK = b"\xef\xbb\xbf"  # with which some editors begin a file


class NotANotebook(Exception):
    """It cannot be shown as a notebook; the message says why, as a sentence."""


def _beginning(name: str, most: int, kind: Any) -> type[msgspec.Struct]:
    """Return the type of the first elements of a list, and of one more where there is one. Of a struct that is like a list, the decoder
    passes over all elements beyond its fields; of a list it would make them all."""
    fields = [(f"_{number}", kind, None) for number in range(most + 1)]
    return msgspec.defstruct(name, fields, array_like=True, gc=False)


_Cells = _beginning("_Cells", SHOWN_CELLS, Raw)
_Outputs = _beginning("_Outputs", SHOWN_OUTPUTS, Raw)
_Lines = _beginning("_Lines", SHOWN_LINES, str | None)


class _File(msgspec.Struct):
    cells: Raw = Raw()
    metadata: Raw = Raw()


class _Metadata(msgspec.Struct):
    language_info: Raw = Raw()


class _Language(msgspec.Struct):
    name: Raw = Raw()


class _Cell(msgspec.Struct):
    cell_type: Raw = Raw()
    source: Raw = Raw()
    outputs: Raw = Raw()
    execution_count: Raw = Raw()


class _Output(msgspec.Struct):
    output_type: Raw = Raw()
    text: Raw = Raw()
    traceback: Raw = Raw()
    ename: Raw = Raw()
    evalue: Raw = Raw()
    data: Raw = Raw()


_FORMS = ("text/plain", *_BEGINNINGS, *_NOT_SHOWN)
_Data = msgspec.defstruct(
    "_Data", [(f"_{number}", Raw, msgspec.field(default=Raw(), name=kind)) for number, kind in enumerate(_FORMS)]
)
_Text = cast("type[str | msgspec.Struct]", str | _Lines)
T = TypeVar("T")


def _decoded(kind: type[T], content: bytes | Raw) -> T | None:
    try:
        return msgspec.json.decode(content, type=prepared(kind)) if bytes(memoryview(content)[:1]) else None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def _elements(beginning: msgspec.Struct | None, most: int) -> tuple[list[Any], bool]:
    values = [] if beginning is None else [value for value in msgspec.structs.astuple(beginning) if value is not None]
    return values[:most], len(values) > most


@dataclass(frozen=True, slots=True)
class Output:
    """`html` is escaped text with terminal colours; `source` is an image's data URI. `note` says what is left out."""

    kind: Literal["text", "error", "image", "nothing"]
    html: str = ""
    source: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    kind: Literal["code", "markdown", "raw"]
    number: str  # of its last execution
    text: str
    outputs: tuple[Output, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Notebook:
    language: str
    cells: tuple[Cell, ...]
    note: str = ""


def is_notebook(name: str) -> bool:
    return name.lower().endswith(".ipynb")


def notebook(content: bytes) -> Notebook:
    """Return the notebook. Raise NotANotebook."""
    if not _is_utf8(content):
        raise NotANotebook(_("This is not a notebook: it is not UTF-8, which JSON has to be. Its text is shown."))
    try:
        file = msgspec.json.decode(content.removeprefix(_MARK), type=prepared(_File))
    except msgspec.ValidationError:
        file = _File()
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        sentence = _("This is not a notebook: it is no JSON, or too deeply nested. Its text is shown.")
        raise NotANotebook(sentence) from None
    listed_cells = _decoded(_Cells, file.cells)
    if listed_cells is None:
        raise NotANotebook(_("This is not a notebook of format 4, which has a list of cells. Its text is shown."))
    budget = _Budget()
    cells, has_more = _elements(listed_cells, SHOWN_CELLS)
    shown = tuple(_cell(cell, budget) for cell in cells)
    note = _("The cells after the first {shown_cells} are left out; download the notebook to see all.")
    language = _decoded(_Language, (_decoded(_Metadata, file.metadata) or _Metadata()).language_info) or _Language()
    name = (_decoded(str, language.name) or "")[:30]
    return Notebook(name, shown, note.format(shown_cells=SHOWN_CELLS) if has_more else "")


def _is_utf8(content: bytes) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(content), _PIECE):  # in pieces, so that no text of the whole file is made
            decoder.decode(content[start : start + _PIECE])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


class _Budget:
    """How much more text and how many more images the page may have."""

    def __init__(self) -> None:
        self._text, self.images = ALL_TEXT, SHOWN_IMAGES

    def cut(self, text: str, has_more: bool) -> tuple[str, str]:
        """Return as much of the text as may be shown, and a note on the rest; `has_more` where there is more than the text already."""
        shown = text[: min(SHOWN_TEXT, self._text)]
        self._text -= len(shown)
        return shown, _CUT if has_more or len(shown) < len(text) else ""


def _cell(cell: Raw, budget: _Budget) -> Cell:
    fields = _decoded(_Cell, cell) or _Cell()
    kind: Literal["code", "markdown", "raw"] = "raw"
    match _decoded(str, fields.cell_type):
        case "code" | "markdown" as known:
            kind = known
    text, note = budget.cut(*_text(fields.source))
    outputs, has_more = _elements(_decoded(_Outputs, fields.outputs) if kind == "code" else None, SHOWN_OUTPUTS)
    shown = tuple(_output(output, budget) for output in outputs)
    if has_more:
        note_of_outputs = _("The outputs after the first {shown_outputs} are left out.", shown_outputs=SHOWN_OUTPUTS)
        shown += (Output("nothing", note=note_of_outputs),)
    count = _decoded(int, fields.execution_count)
    number = str(count) if count is not None and 0 <= count < 10**6 else ""
    return Cell(kind, number, text, shown, note)


def _output(output: Raw, budget: _Budget) -> Output:
    fields = _decoded(_Output, output) or _Output()
    match _decoded(str, fields.output_type):
        case "stream":
            return _text_output("text", _text(fields.text), budget)
        case "error":
            named = ": ".join(filter(None, (_text(name)[0] for name in (fields.ename, fields.evalue))))
            trace, has_more = _text(fields.traceback, between="\n")
            return _text_output("error", (trace or named, has_more), budget)
        case "display_data" | "execute_result" if (data := _decoded(_Data, fields.data)) is not None:
            return _data_output(dict(zip(_FORMS, msgspec.structs.astuple(data), strict=True)), budget)
    return Output("nothing", note=_("An output of an unknown kind is left out."))


def _data_output(forms: dict[str, Raw], budget: _Budget) -> Output:
    """Return the form of it that can be shown: an image, or else plain text. Of other forms only their kind is said."""
    data = {kind: value for kind, value in forms.items() if memoryview(value).nbytes}
    left_out = sorted({name for kind, name in _NOT_SHOWN.items() if kind in data})
    note = ""
    if left_out:
        note = _("Its {formats} is left out, because nothing of a notebook runs here.", formats=listed(left_out))
    for kind in _BEGINNINGS:
        if kind in data:
            image = _image(kind, _text(data[kind])[0], budget)
            return replace(image, note=" ".join(filter(None, (image.note, note))))
    if "text/plain" in data:
        return _text_output("text", _text(data["text/plain"]), budget, note)
    return Output("nothing", note=note or _("An output that is neither text nor a PNG or JPEG image is left out."))


def _image(kind: str, text: str, budget: _Budget) -> Output:
    encoded = "".join(text[: IMAGE_CHARACTERS + 2**16].split())
    if len(encoded) > IMAGE_CHARACTERS:
        largest = format_bytes(IMAGE_CHARACTERS * 3 // 4)
        return Output("nothing", note=_("An image of more than {size} is left out.", size=largest))
    if not encoded.startswith(_BEGINNINGS[kind]) or not _BASE64.fullmatch(encoded):
        return Output("nothing", note=_("An image that is damaged is left out."))
    if not budget.images:
        return Output("nothing", note=_("Left out, because the page is long already; download the notebook to see it."))
    budget.images -= 1
    return Output("image", source=f"data:{kind};base64,{encoded}")


def _text_output(kind: Literal["text", "error"], text: tuple[str, bool], budget: _Budget, note: str = "") -> Output:
    shown, cut = budget.cut(*text)
    return Output(kind, terminal_html(shown), note=" ".join(filter(None, (cut, note))))


def _text(value: Raw, between: str = "") -> tuple[str, bool]:
    """Return a text of the notebook's, which is one string or a list of its lines, and whether there are more lines."""
    text = _decoded(_Text, value)
    if text is None or isinstance(text, str):
        return text or "", False
    lines, has_more = _elements(text, SHOWN_LINES)
    return between.join(lines), has_more
