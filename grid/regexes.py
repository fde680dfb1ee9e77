"""Compiles regular expressions that people type, such that searching a text takes time in proportion to its length, whatever is typed.

The engine is RE2, which has no backtracking: `(a+)+$` is as harmless as `a`. It refuses what only backtracking can do, back references and
look-around, and its memory is bounded. The time for a character grows with the size of the program, so that is limited, too.
"""

import re2

from grid.translation import gettext as _

LONGEST_PATTERN = 300
# In RE2's instructions. Patterns that people write have some dozens, the largest built-in one 153; a line of 2,000 characters takes
# `x[a-y]{900}z`, which has 1,800, twelve milliseconds.
LARGEST_PROGRAM = 400
LARGEST_TOGETHER = 4000  # of all patterns that are searched together


def options() -> re2.Options:
    """Return RE2's options, which write nothing to the standard error."""
    found = re2.Options()
    found.log_errors = False
    return found


def problem_of(pattern: str) -> str:
    """Return why the pattern cannot be used, as a sentence, or ""."""
    if not pattern.strip():
        return _("Give a pattern.")
    if len(pattern) > LONGEST_PATTERN:
        return _("Use at most {most} characters.", most=LONGEST_PATTERN)
    try:
        compiled = re2.compile(pattern, options())
    except re2.error as error:
        return _("This is no regular expression that RE2 can search: {error}.", error=_words(error))
    if compiled.programsize > LARGEST_PROGRAM:
        return _("This pattern is too large; use smaller repetitions.")
    if compiled.search(""):
        return _("This pattern matches every line; name words of the line.")
    return ""


def size_of(pattern: str) -> int:
    """Return the instructions of a pattern that can be used."""
    return int(re2.compile(pattern, options()).programsize)


def _words(error: re2.error) -> str:
    said = error.args[0] if error.args else ""
    return said.decode(errors="replace") if isinstance(said, bytes) else str(said)
