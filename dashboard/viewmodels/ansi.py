"""Turns a program's line with terminal escape sequences into HTML; pure. Colours and bold become classes, others are dropped."""

import re
from collections.abc import Iterator
from html import escape

_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)(?P<parameters>[0-?]*)[ -/]*(?P<final>[@-~])"  # CSI, of which m sets colours
    r"|(?:\x1b[\]P^_X]|[\x9d\x90\x9e\x9f\x98])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c|$)"  # OSC and its like: titles, links
    r"|\x1b[ -/]*[0-~]"
)
_CONTROL = re.compile(
    r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
)  # and bidirectional overrides


def last_state(text: str) -> str:
    """Return what a terminal shows of a line in which a progress bar has drawn itself anew, each time after a carriage return."""
    if "\r" not in text:
        return text
    return next((part for part in reversed(text.split("\r")) if part), "")


def plain(text: str) -> str:
    """Return the text as it is read: without escape sequences and control characters."""
    return "".join(part for _, part in _parts(text)) if _CONTROL.search(text) else text


def ansi_html(text: str) -> str:
    """Return escaped HTML, in which coloured and bold text is inside `<span class="ansi-...">`."""
    return "".join(
        f'<span class="{classes}">{escape(part)}</span>' if classes else escape(part) for classes, part in _parts(text)
    )


def terminal_html(text: str) -> str:
    """Return the lines of a text as a terminal shows them, as escaped HTML."""
    return "\n".join(ansi_html(last_state(line.removesuffix("\r"))) for line in text.split("\n"))


def _parts(text: str) -> Iterator[tuple[str, str]]:
    """Yield the classes and the text of each stretch of one style; "" when it has none."""
    colour, is_bold, start = "", False, 0
    for found in _SEQUENCE.finditer(text):
        if part := _CONTROL.sub("", text[start : found.start()]):
            yield _classes(colour, is_bold), part
        start = found.end()
        if found["final"] == "m":
            colour, is_bold = _styled(found["parameters"], colour, is_bold)
    if part := _CONTROL.sub("", text[start:]):
        yield _classes(colour, is_bold), part


def _classes(colour: str, is_bold: bool) -> str:
    return " ".join(name for name in (colour, "ansi-bold" if is_bold else "") if name)


def _styled(parameters: str, colour: str, is_bold: bool) -> tuple[str, bool]:
    codes = [
        int(code) if code.isascii() and code.isdigit() and len(code) < 4 else 0 for code in re.split("[;:]", parameters)
    ]
    position = 0
    while position < len(codes):
        code = codes[position]
        if code == 0:
            colour, is_bold = "", False
        elif code in (1, 22):
            is_bold = code == 1
        elif 30 <= code <= 37 or 90 <= code <= 97:
            colour = f"ansi-{code - 30 if code < 90 else code - 82}"
        elif code == 39:
            colour = ""
        elif code in (38, 48):  # one of 256 colours, or red, green and blue: only the 16 that have names are shown
            kind = codes[position + 1] if position + 1 < len(codes) else 0
            if kind == 5 and code == 38:
                number = codes[position + 2] if position + 2 < len(codes) else 16
                colour = f"ansi-{number}" if number < 16 else ""
            elif code == 38:
                colour = ""
            position += {5: 2, 2: 4}.get(kind, 0)
        position += 1
    return colour, is_bold
