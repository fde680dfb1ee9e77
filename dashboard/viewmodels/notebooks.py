"""A Jupyter notebook as a page shows it; pure. It is read as JSON and shown by our own template: none of it is HTML, and none of it runs.

Whoever wrote it may have written anything, so each field may have any type, and everything is counted and cut.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from grid.quantity import format_bytes
from grid.wording import listed, plural

NOTEBOOK_BYTES = 8 * 2**20
SHOWN_CELLS = 300
SHOWN_OUTPUTS = 20  # of a cell
SHOWN_TEXT = 32 * 2**10  # characters of a cell's text, or of an output
ALL_TEXT = 2**20
SHOWN_IMAGES = 30
IMAGE_CHARACTERS = 3 * 2**20  # of an image in base64
# What base64 of a PNG and of a JPEG begins with.
_BEGINNINGS = {"image/png": "iVBORw0KGg", "image/jpeg": "/9j/"}
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_NOT_SHOWN = {
    "text/html": "HTML",
    "image/svg+xml": "SVG",
    "application/javascript": "JavaScript",
    "text/javascript": "JavaScript",
}
_CUT = "… cut here; download the notebook for the rest."
_LATER = "Left out, because the page is long already; download the notebook to see it."


class NotANotebook(Exception):
    """It cannot be shown as a notebook; the message says why, as a sentence."""


@dataclass(frozen=True, slots=True)
class Output:
    """`text` may have terminal colours; `source` is an image's data URI. `note` says what is left out."""

    kind: Literal["text", "error", "image", "nothing"]
    text: str = ""
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
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        raise NotANotebook("This is not a notebook: it is no JSON, or too deeply nested. Its text is shown.") from None
    cells = found.get("cells") if isinstance(found, dict) else None
    if not isinstance(cells, list):
        raise NotANotebook("This is not a notebook of format 4, which has a list of cells. Its text is shown.")
    budget = _Budget()
    shown = tuple(_cell(one, budget) for one in cells[:SHOWN_CELLS])
    left = len(cells) - len(shown)
    note = f"{plural(left, 'more cell')} left out; download the notebook to see all." if left else ""
    return Notebook(_language(found), shown, note)


class _Budget:
    """How much more text and how many more images the page may have."""

    def __init__(self) -> None:
        self._text, self._images = ALL_TEXT, SHOWN_IMAGES

    def cut(self, text: str) -> tuple[str, str]:
        """Return as much of the text as may be shown, and a note on the rest."""
        shown = text[: min(SHOWN_TEXT, self._text)]
        self._text -= len(shown)
        return shown, _CUT if len(shown) < len(text) else ""

    def takes_image(self) -> bool:
        self._images -= 1
        return self._images >= 0


def _cell(cell: Any, budget: _Budget) -> Cell:
    fields = cell if isinstance(cell, dict) else {}
    kind: Literal["code", "markdown", "raw"] = "raw"
    if fields.get("cell_type") in ("code", "markdown"):
        kind = fields["cell_type"]
    text, note = budget.cut(_text(fields.get("source")))
    outputs = fields.get("outputs") if kind == "code" else None
    outputs = outputs if isinstance(outputs, list) else []
    shown = tuple(_output(one, budget) for one in outputs[:SHOWN_OUTPUTS])
    if len(outputs) > len(shown):
        shown += (Output("nothing", note=f"{plural(len(outputs) - len(shown), 'more output')} left out."),)
    count = fields.get("execution_count")
    number = str(count) if type(count) is int and 0 <= count < 10**6 else ""
    return Cell(kind, number, text, shown, note)


def _output(output: Any, budget: _Budget) -> Output:
    fields = output if isinstance(output, dict) else {}
    match fields.get("output_type"):
        case "stream":
            return _text_output("text", _text(fields.get("text")), budget)
        case "error":
            trace = "\n".join(_texts(fields.get("traceback")))
            named = ": ".join(filter(None, (_text(fields.get("ename")), _text(fields.get("evalue")))))
            return _text_output("error", trace or named, budget)
        case "display_data" | "execute_result" if isinstance(fields.get("data"), dict):
            return _data_output(fields["data"], budget)
    return Output("nothing", note="An output of an unknown kind is left out.")


def _data_output(data: Mapping[str, Any], budget: _Budget) -> Output:
    """Return the form of it that can be shown: an image, or else plain text. Of other forms only their kind is said."""
    left_out = sorted({name for kind, name in _NOT_SHOWN.items() if kind in data})
    note = f"Its {listed(left_out)} is left out, because nothing of a notebook runs here." if left_out else ""
    for kind in _BEGINNINGS:
        if kind in data:
            return _image(kind, _text(data[kind]), budget)
    if "text/plain" in data:
        return _text_output("text", _text(data["text/plain"]), budget, note)
    return Output("nothing", note=note or "An output that is neither text nor a PNG or JPEG image is left out.")


def _image(kind: str, text: str, budget: _Budget) -> Output:
    encoded = "".join(text[: IMAGE_CHARACTERS + 2**16].split())
    if len(encoded) > IMAGE_CHARACTERS:
        return Output("nothing", note=f"An image of more than {format_bytes(IMAGE_CHARACTERS * 3 // 4)} is left out.")
    if not encoded.startswith(_BEGINNINGS[kind]) or not _BASE64.fullmatch(encoded):
        return Output("nothing", note="An image that is damaged is left out.")
    if not budget.takes_image():
        return Output("nothing", note=_LATER)
    return Output("image", source=f"data:{kind};base64,{encoded}")


def _text_output(kind: Literal["text", "error"], text: str, budget: _Budget, note: str = "") -> Output:
    shown, cut = budget.cut(text)
    return Output(kind, shown, note=" ".join(filter(None, (cut, note))))


def _text(value: Any) -> str:
    """Return a text of the notebook's: one string, or a list of its lines. What cannot be written as UTF-8 is replaced."""
    text = value if isinstance(value, str) else "".join(_texts(value))
    return text.encode(errors="replace").decode()


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, Sequence) and not isinstance(value, str):
        yield from (part.encode(errors="replace").decode() for part in value if isinstance(part, str))


def _language(found: Mapping[str, Any]) -> str:
    metadata = found.get("metadata")
    info = metadata.get("language_info") if isinstance(metadata, dict) else None
    name = info.get("name") if isinstance(info, dict) else None
    return _text(name)[:30] if isinstance(name, str) else ""
