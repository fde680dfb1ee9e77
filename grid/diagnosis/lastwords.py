"""Finds the line of a log that tells most of an error that no entry of the knowledge base knows; pure.

Programs write their errors in a few shapes, whatever they say: a level, an exception, or a tool's own "error: ". A line of another shape
tells less, and one that only reports how another process ended, or points elsewhere, tells nothing.
"""

from functools import lru_cache

from grid.core.regexes import Expression
from grid.core.wording import plain_text
from grid.diagnosis.logfindings import LAST_LINES, LONGEST_LINE, without_prefix
from grid.diagnosis.loglevels import ERROR, level_of

# Shapes that name no level: exceptions of other names, and errors of R, of Rust and of tools.
_OTHER_ERROR = Expression(
    r"^(?:[\w$]+\.)+[A-Z][\w$]+: |^[\w./-]{1,60}: (?:fatal |internal )?error: |^npm (?:error|ERR!) |panicked at |"
    r"^Error in |^fatal: |Error\(\)"
)
_FAILS = Expression(
    r"(?i)\b(?:cannot|can't|could ?n[o']t|unable|fail(?:s|ed|ure)?|denied|refused|missing|insufficient|unavailable|exceed(?:s|ed)?|"
    r"invalid|unsupported|error|exception|mismatch|no (?:such|valid)|timed out|too (?:many|few|long|large|small|old)|"
    r"not (?:be )?(?:available|found|permitted|allowed|supported|installed|enough|open|valid|exist|ready))\b"
)
_ELSEWHERE = Expression(
    r"(?i)non-?zero|\bexit(?:ed)?(?: with)? (?:status|code)\b|halted$|core dumped|\b(?:see|refer)\b.*\b(?:above|below|logs?|docs?)\b|"
    r"ChildFailedError|^make.*\*\*\*|^Traceback|^\s*at "
)


@lru_cache(maxsize=64)  # a page asks about the same end again and again
def last_words(text: str) -> str:
    """Return the last of the lines that tell most of an error, "" where none tells of one."""
    lines = [without_prefix(line) for line in plain_text(text).splitlines()[-LAST_LINES:]]
    weight, at = max(((_weight(line), at) for at, line in enumerate(lines)), default=(0, 0))
    if not weight:
        return ""
    line = lines[at].strip()
    if line.endswith(":"):  # what is wrong stands in the next line, as in those of R and Rust
        line = " ".join((line, *(each.strip() for each in lines[at + 1 : at + 2])))
    return line[:LONGEST_LINE]


def _weight(line: str) -> int:
    """Return 0 for a line that tells of no error. What is indented is code, or a place in a trace."""
    if line[:1] in ("", " ") or _ELSEWHERE.search(line):
        return 0
    level = level_of(line.strip())
    if level == ERROR or _OTHER_ERROR.search(line):
        return 2
    return int(not level and _FAILS.search(line) is not None)
