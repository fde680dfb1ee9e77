"""What a job runs with: its rules, and the record of it that each run keeps.

The record is frozen when a run is asked for, so that all its attempts run with the same, whatever is edited meanwhile.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from grid.errors import Problem, Rejected
from grid.files.repositories import is_revision
from grid.launch.spec import EnvironmentSpec
from grid.models import Job
from grid.models.environment import VARIABLE_NAME
from grid.models.variables import TAKEN_NAMES, TAKEN_PREFIX, is_taken
from grid.wording import exact_duration, listed, plural

MAXIMUM_COMMAND = 20_000  # characters; Linux takes 128 KiB in one argument, and a character may be four bytes
MAXIMUM_VALUE = 20_000
MAXIMUM_VARIABLES = 100
MAXIMUM_BYTES = 200_000  # of all variables and parameters together: they share a Secret, which holds 1 MiB
MAXIMUM_FOLDER = 500
SHORTEST_TIMEOUT, LONGEST_TIMEOUT = 60, 30 * 86400
MAXIMUM_RETRIES = 10
SHORTEST_WAIT, LONGEST_WAIT = 1, 3600  # seconds between two attempts
MAXIMUM_AT_ONCE = 1000

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")  # all but tab and line feed


class JobSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What its owner typed about a job, beside its tier and environment. A time is in seconds; None is no limit."""

    command: str = ""
    variables: dict[str, str] = {}
    folder: str = ""
    files_at: str = ""  # the branch or commit of files in Git to begin with; "" for main
    timeout_seconds: int | None = None
    retries: int = 0
    retry_seconds: int = 30
    at_once: int | None = None


DEFAULTS = JobSettings()


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What the attempts of a run are launched with, as `RunSettings.record` stores it; the tier and the environment by id and by the name
    that they had."""

    title: str
    environment: str
    environment_name: str
    tier: str
    tier_name: str
    cluster: dict[str, Any] | None = None
    job: JobSettings = DEFAULTS
    pinned: EnvironmentSpec | None = None  # of a run that repeats an earlier one: its environment as it was then


def settings_of(job: Job) -> JobSettings:
    """Return what is stored of a job."""
    return JobSettings(**{name: getattr(job, name) for name in JobSettings.__struct_fields__})


def read_record(stored: object) -> RunRecord:
    """Return a run's record. Raise Rejected with a sentence when the stored JSON is none."""
    try:
        return msgspec.convert(stored, RunRecord)
    except msgspec.ValidationError as error:
        sentence = "What was stored for this run can no longer be read. Start a new run of its job."
        raise Rejected([Problem("", sentence, "unreadable")]) from error


def problems_of(settings: JobSettings) -> Iterator[Problem]:
    """Yield all problems of what was typed, each at its field."""
    yield from _wrong_command(settings.command)
    yield from wrong_variables(settings.variables)
    yield from _wrong_folder(settings.folder)
    if settings.files_at and not is_revision(settings.files_at):
        sentence = "Name a branch, or a commit by its 40 letters and digits, as the project's files show them."
        yield Problem("files_at", sentence, "revision")
    timeout = settings.timeout_seconds
    if timeout is not None and not SHORTEST_TIMEOUT <= timeout <= LONGEST_TIMEOUT:
        yield Problem("timeout", "Use a timeout between 1 minute and 30 days, or none.", "timeout")
    if not 0 <= settings.retries <= MAXIMUM_RETRIES:
        yield Problem("retries", f"Use 0 to {MAXIMUM_RETRIES} retries.", "retries")
    if not SHORTEST_WAIT <= settings.retry_seconds <= LONGEST_WAIT:
        sentence = (
            f"Wait between {exact_duration(SHORTEST_WAIT)} and {exact_duration(LONGEST_WAIT)} before the first retry."
        )
        yield Problem("retry_wait", sentence, "retry_wait")
    if settings.at_once is not None and not 1 <= settings.at_once <= MAXIMUM_AT_ONCE:
        yield Problem("at_once", f"Use 1 to {MAXIMUM_AT_ONCE:,} runs at once, or leave it empty.", "at_once")


def wrong_variables(
    variables: Mapping[str, str], *, path: str = "variables", what: str = "variable"
) -> Iterator[Problem]:
    """Yield the problems of names and values; `what` they are called."""
    if len(variables) > MAXIMUM_VARIABLES:
        yield Problem(path, f"Use at most {plural(MAXIMUM_VARIABLES, what)}; these are {len(variables)}.", "too_many")
        return
    wrong = [name for name in variables if not VARIABLE_NAME.fullmatch(name)]
    if wrong:
        names = listed(f"“{_shown(name)}”" for name in wrong[:3])
        sentence = f"{names} cannot name a {what}. Use letters, digits and underscores, and no digit first."
        yield Problem(path, sentence, "name")
    taken = [name for name in variables if is_taken(name)]
    if taken:
        sentence = (
            f"{listed(taken[:3])} {'is' if len(taken) == 1 else 'are'} set by Compute Grid. Choose another name: "
            f"{listed(sorted(TAKEN_NAMES))} and all that begin with {TAKEN_PREFIX} are taken."
        )
        yield Problem(path, sentence, "taken")
    long = [name for name, value in variables.items() if len(value) > MAXIMUM_VALUE]
    if long:
        sentence = (
            f"The value of {_shown(long[0])} has {len(variables[long[0]]):,} characters; use at most {MAXIMUM_VALUE:,}."
        )
        yield Problem(path, f"{sentence} Put more into a file of the project.", "too_long")
    elif sum(len(name) + len(value.encode(errors="replace")) for name, value in variables.items()) > MAXIMUM_BYTES:
        sentence = f"These are more than {MAXIMUM_BYTES:,} bytes together. Put the longest into a file of the project."
        yield Problem(path, sentence, "too_long")
    if any(_is_unstorable(value) for value in variables.values()):
        yield Problem(
            path, f"The value of a {what} holds a character that cannot be stored, such as NUL.", "unprintable"
        )


def _wrong_command(command: str) -> Iterator[Problem]:
    if len(command) > MAXIMUM_COMMAND:
        sentence = f"Use at most {MAXIMUM_COMMAND:,} characters; these are {len(command):,}. Put a longer script into the project."
        yield Problem("command", sentence, "too_long")
    if _is_unstorable(command):
        yield Problem("command", "It holds a character that no shell takes, such as NUL.", "unprintable")


def _wrong_folder(folder: str) -> Iterator[Problem]:
    if len(folder) > MAXIMUM_FOLDER:
        yield Problem("folder", f"Use at most {MAXIMUM_FOLDER} characters; these are {len(folder)}.", "too_long")
    if not folder.isprintable() or _is_unstorable(folder):
        yield Problem("folder", "Use visible characters, in one line.", "unprintable")
    elif folder.startswith(("/", "~")) or ".." in folder.split("/"):
        sentence = "Name a folder below the project's files, such as training/churn; it cannot begin with / or lead up by “..”."
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
