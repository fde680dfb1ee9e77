"""What a job runs with: its rules, and the record of it that is frozen when a run is asked for, so that all attempts run with the same."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from grid.core.decoding import prepared
from grid.core.errors import Problem, Rejected
from grid.core.gitnames import is_revision
from grid.core.regexes import Expression
from grid.core.translation import gettext as _, ngettext
from grid.core.wording import exact_duration, listed
from grid.executions.launchrequest import DEFAULTS, JobSettings
from grid.executions.spec import EnvironmentSpec
from grid.models import Job
from grid.models.environment import VARIABLE_NAME
from grid.models.secret import TAKEN_NAMES, TAKEN_PREFIX, is_taken

MAXIMUM_COMMAND = 20_000  # characters; Linux takes 128 KiB in one argument, and a character may be four bytes
MAXIMUM_VALUE = 20_000
MAXIMUM_VARIABLES = 100
MAXIMUM_BYTES = 200_000  # of all variables and parameters together: they share a Secret, which holds 1 MiB
MAXIMUM_FOLDER = 500
SHORTEST_TIMEOUT, LONGEST_TIMEOUT = 60, 30 * 86400
MAXIMUM_RETRIES = 10
SHORTEST_WAIT, LONGEST_WAIT = 1, 3600  # seconds between two attempts
MAXIMUM_AT_ONCE = 1000
LOWEST_PORT, HIGHEST_PORT = 1024, 65535  # a program without rights can listen on no lower one

_CONTROL = Expression(r"[\x00-\x08\x0b-\x1f\x7f]")  # all but tab and line feed


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What the attempts of a run are launched with, as `RunSettings.record` stores it; rows by their id and the name that they had."""

    title: str
    environment: str
    environment_name: str
    tier: str
    tier_name: str
    cluster: dict[str, Any] | None = None
    job: JobSettings = DEFAULTS
    pinned: EnvironmentSpec | None = None  # of a run that repeats an earlier one: its environment as it was then


def settings_of(job: Job) -> JobSettings:
    return JobSettings(**{name: getattr(job, name) for name in JobSettings.__struct_fields__})


def read_record(stored: object) -> RunRecord:
    """Return a run's record. Raise Rejected with a sentence when the stored JSON is none."""
    try:
        return msgspec.convert(stored, prepared(RunRecord))
    except msgspec.ValidationError as error:
        sentence = _("What was stored for this run can no longer be read. Start a new run of its job.")
        raise Rejected([Problem("", sentence, "unreadable")]) from error


def problems_of(settings: JobSettings) -> Iterator[Problem]:
    """Yield all problems of what was typed, each at its field."""
    yield from _wrong_command(settings.command)
    yield from wrong_variables(settings.variables)
    yield from _wrong_folder(settings.folder)
    if settings.files_at and not is_revision(settings.files_at):
        sentence = _("Name a branch, or a commit by its 40 letters and digits, as the project's files show them.")
        yield Problem("files_at", sentence, "revision")
    if settings.page_port is not None and not LOWEST_PORT <= settings.page_port <= HIGHEST_PORT:
        sentence = _("Use a port from {lowest} to {highest}, or leave it empty.")
        yield Problem("page_port", sentence.format(lowest=LOWEST_PORT, highest=HIGHEST_PORT), "page_port")
    timeout = settings.timeout_seconds
    if timeout is not None and not SHORTEST_TIMEOUT <= timeout <= LONGEST_TIMEOUT:
        yield Problem("timeout", _("Use a timeout between 1 minute and 30 days, or none."), "timeout")
    if not 0 <= settings.retries <= MAXIMUM_RETRIES:
        yield Problem("retries", _("Use 0 to {most} retries.", most=MAXIMUM_RETRIES), "retries")
    if not SHORTEST_WAIT <= settings.retry_seconds <= LONGEST_WAIT:
        shortest, longest = exact_duration(SHORTEST_WAIT), exact_duration(LONGEST_WAIT)
        sentence = _("Wait {shortest} to {longest} before the first retry.", shortest=shortest, longest=longest)
        yield Problem("retry_wait", sentence, "retry_wait")
    if settings.at_once is not None and not 1 <= settings.at_once <= MAXIMUM_AT_ONCE:
        sentence = _("Use 1 to {most:,} runs at once, or leave it empty.", most=MAXIMUM_AT_ONCE)
        yield Problem("at_once", sentence, "at_once")


class VariableWords(NamedTuple):
    too_many: str
    name: str
    unprintable: str


VARIABLES = VariableWords(
    _("Use at most {most:,} variables; these are {count}."),
    _("{names} cannot name a variable. Use letters, digits and underscores, and no digit first."),
    _("The value of a variable holds a character that cannot be stored, such as NUL."),
)
PARAMETERS = VariableWords(
    _("Use at most {most:,} parameters; these are {count}."),
    _("{names} cannot name a parameter. Use letters, digits and underscores, and no digit first."),
    _("The value of a parameter holds a character that cannot be stored, such as NUL."),
)


def wrong_variables(
    variables: Mapping[str, str], *, path: str = "variables", words: VariableWords = VARIABLES
) -> Iterator[Problem]:
    """Yield the problems of names and values, in the words for what they are."""
    if len(variables) > MAXIMUM_VARIABLES:
        yield Problem(path, words.too_many.format(most=MAXIMUM_VARIABLES, count=len(variables)), "too_many")
        return
    if wrong := [name for name in variables if not VARIABLE_NAME.fullmatch(name)]:
        names = listed(f"“{_shown(name)}”" for name in wrong[:3])
        yield Problem(path, words.name.format(names=names), "name")
    if taken := [name for name in variables if is_taken(name)]:
        sentence = ngettext(
            "{names} is set by Compute Grid. Choose another name: {taken} and all that begin with {prefix} are taken.",
            "{names} are set by Compute Grid. Choose another name: {taken} and all that begin with {prefix} are taken.",
            len(taken),
            names=listed(taken[:3]),
            taken=listed(sorted(TAKEN_NAMES)),
            prefix=TAKEN_PREFIX,
        )
        yield Problem(path, sentence, "taken")
    if long := [name for name, value in variables.items() if len(value) > MAXIMUM_VALUE]:
        sentence = _(
            "The value of {name} has {length:,} characters; use at most {most:,}. Put more into a file of the project."
        )
        sentence = sentence.format(name=_shown(long[0]), length=len(variables[long[0]]), most=MAXIMUM_VALUE)
        yield Problem(path, sentence, "too_long")
    elif sum(len(name) + len(value.encode(errors="replace")) for name, value in variables.items()) > MAXIMUM_BYTES:
        sentence = _("These are more than {most:,} bytes together. Put the longest into a file of the project.")
        yield Problem(path, sentence.format(most=MAXIMUM_BYTES), "too_long")
    if any(_is_unstorable(value) for value in variables.values()):
        yield Problem(path, words.unprintable, "unprintable")


def _wrong_command(command: str) -> Iterator[Problem]:
    if len(command) > MAXIMUM_COMMAND:
        sentence = _("Use at most {most:,} characters; these are {length:,}. Put a longer script into the project.")
        yield Problem("command", sentence.format(most=MAXIMUM_COMMAND, length=len(command)), "too_long")
    if _is_unstorable(command):
        yield Problem("command", _("It holds a character that no shell takes, such as NUL."), "unprintable")


def _wrong_folder(folder: str) -> Iterator[Problem]:
    if len(folder) > MAXIMUM_FOLDER:
        sentence = _("Use at most {most} characters; these are {length}.", most=MAXIMUM_FOLDER, length=len(folder))
        yield Problem("folder", sentence, "too_long")
    if not folder.isprintable() or _is_unstorable(folder):
        yield Problem("folder", _("Use visible characters, in one line."), "unprintable")
    elif folder.startswith(("/", "~")) or ".." in folder.split("/"):
        sentence = _(
            "Name a folder below the project's files, such as training/churn; it cannot begin with / or lead up by “..”."
        )
        yield Problem("folder", sentence, "folder")


def clean_folder(text: str) -> str:
    """Return a typed folder without what changes nothing: blanks, empty parts, "." and a slash at its end."""
    text = text.strip()
    parts = [part for part in text.split("/") if part not in ("", ".")]
    return ("/" if text.startswith("/") else "") + "/".join(parts)


def _is_unstorable(text: str) -> bool:
    return bool(_CONTROL.search(text)) or any("\ud800" <= letter <= "\udfff" for letter in text)


def _shown(name: str) -> str:
    return name[:40].encode("unicode_escape", errors="replace").decode() if not name.isprintable() else name[:40]
