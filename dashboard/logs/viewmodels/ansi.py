"""Turns a program's line with terminal escape sequences into HTML; pure. Colours and bold become classes, others are dropped."""

from collections.abc import Iterable, Iterator
from html import escape
from itertools import chain

# OSC and its like, such as titles and links, begin with one of these, or ESC and one of those.
_STRINGS = frozenset("\x9d\x90\x9e\x9f\x98")
_ESCAPED_STRINGS = frozenset("]P^_X")
_INTRODUCERS, _STOPS = ("\x1b", "\x9b", *_STRINGS), ("\x07", "\x1b", "\x9c")
_PARAMETERS, _INTERMEDIATES = frozenset("0123456789:;<=>?"), frozenset(" !\"#$%&'()*+,-./")
# Control characters but for the tab, and bidirectional overrides.
_DROPPED = dict.fromkeys(
    (*range(9), *range(0xA, 0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
)


def last_state(text: str) -> str:
    """Return what a terminal shows of a line in which a progress bar has drawn itself anew, each time after a carriage return."""
    if "\r" not in text:
        return text
    # A part without a character only sets colours or the cursor, and leaves what the line says.
    return next((part for part in reversed(text.split("\r")) if plain(part)), "")


def plain(text: str) -> str:
    """Return the text as it is read: without escape sequences and control characters."""
    return text if text.isprintable() else "".join(part for _, part in _parts(text))


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
    sequences = () if text.isprintable() else _sequences(text)
    for begin, end, parameters in chain(sequences, ((len(text), len(text), None),)):
        part = text[start:begin]
        if part := part if part.isprintable() else part.translate(_DROPPED):
            yield " ".join(name for name in (colour, "ansi-bold" if is_bold else "") if name), part
        start = end
        if parameters is not None:
            colour, is_bold = _styled(parameters, colour, is_bold)


class _Next:
    """Where one of some characters comes next; each is searched from each place once, or many beginnings without an end cost a square."""

    def __init__(self, text: str, characters: Iterable[str]) -> None:
        self._text, self._places = text, {character: -1 for character in characters if character in text}

    def after(self, place: int) -> int:
        """Return the next place from this one on, which never goes back; the text's length when there is none."""
        for character, known in self._places.items():
            if known < place:
                following = self._text.find(character, place)
                self._places[character] = following if following >= 0 else len(self._text)
        return min(self._places.values(), default=len(self._text))


def _sequences(text: str) -> Iterator[tuple[int, int, str | None]]:
    """Yield the beginning and the end of each escape sequence, and its parameters when it sets the style."""
    starts, stops = _Next(text, _INTRODUCERS), _Next(text, _STOPS)
    begin = starts.after(0)
    while begin < len(text):
        end, parameters = _sequence_at(text, begin, stops)
        if end > begin:
            yield begin, end, parameters
        begin = starts.after(max(end, begin + 1))


def _sequence_at(text: str, begin: int, stops: _Next) -> tuple[int, str | None]:
    """Return where the sequence ends, `begin` when there is none, and its parameters when it sets the style."""
    is_escape = text[begin] == "\x1b"
    kind, place = (text[begin + 1 : begin + 2], begin + 2) if is_escape else (text[begin], begin + 1)
    if kind in (_ESCAPED_STRINGS if is_escape else _STRINGS):
        stop = stops.after(place)
        if text[stop : stop + 1] != "\x1b":
            return min(stop + 1, len(text)), None
        if text.startswith("\x1b\\", stop):
            return stop + 2, None
    elif kind == ("[" if is_escape else "\x9b"):
        middle = _after(text, place, _PARAMETERS)
        last = _after(text, middle, _INTERMEDIATES)
        if "@" <= text[last : last + 1] <= "~":
            return last + 1, text[place:middle] if text[last] == "m" else None
    if not is_escape:
        return begin, None
    last = _after(text, begin + 1, _INTERMEDIATES)
    return (last + 1 if "0" <= text[last : last + 1] <= "~" else begin), None


def _after(text: str, place: int, characters: frozenset[str]) -> int:
    while place < len(text) and text[place] in characters:
        place += 1
    return place


def _styled(parameters: str, colour: str, is_bold: bool) -> tuple[str, bool]:
    codes = [
        int(code) if code.isascii() and code.isdigit() and len(code) < 4 else 0
        for code in parameters.replace(":", ";").split(";")
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
