"""No expression, and no function that reads people's text by hand, takes more than linear time, whatever the text.

What is quadratic is told by the processor time of this thread for n and for 2n characters, and only where it is long enough to be compared.
"""

import ast
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from importlib import import_module
from itertools import islice, pairwise
from pathlib import Path

import pytest
from django.core.validators import RegexValidator

from dashboard.alerts.viewmodel import runbook_html
from dashboard.logs.viewmodels.ansi import ansi_html, last_state, plain
from dashboard.logs.viewmodels.log_lines import parse_cursor
from dashboard.palette.viewmodel import PaletteQuery
from grid.core.gitnames import is_revision
from grid.core.labels import label_value
from grid.core.logstamps import stamped
from grid.core.regexes import EXPRESSIONS, Expression, RepeatedExpression
from grid.core.requirementlines import parse_requirements
from grid.diagnosis.exits import CANNOT_START
from grid.diagnosis.logfindings import BUILT_IN, LogTable
from grid.diagnosis.loglevels import level_of
from grid.diagnosis.refusals import explain_refusal
from grid.diagnosis.remotetroubles import explain, is_about_host_key, scrubbed
from grid.diagnosis.scheduling import counted_reasons
from grid.edge.logs import _fields
from grid.environments.buildjobs import last_error
from grid.kube.redaction import Redactor
from grid.models import fields
from grid.sandbox.apiserver.selectors import parse_labels
from grid.sandbox.kubelet.environment import expand
from grid.sandbox.kubelet.mounts import Mounts

ROOT = Path(__file__).parents[1]
Run = Callable[[str], object]

LENGTH = 2_000  # characters; of twice as many, whatever is quadratic in them takes several times `MEASURABLE`
MEASURABLE = 0.001  # seconds of this thread
MOST = 2.5  # times as long may it take for twice as many characters
# Times LENGTH, tried until one is within MOST: what else the machine does changes a time, and so does an engine that RE2 changes to.
SIZES = (1, 2)

CLASSES = (
    *"\x9d\x1b\x9b\x90\r\n\t \"'`0a([{)]/@=$\\-:é\u0301\udc80\ud800\U0001f600\0",
    *(
        "\x1b]",
        "\x1b[",
        "\x1b[1;",
        "\x9d\x1b",
        "\x1b]\x9b",
        "\r\n",
        "\n ",
        "e\u0301",
        "a\na ",
        "a.",
        "1.",
        "](",
        "$(",
        "$($$",
    ),
    *("a ", "a, ", "1 a, ", "a=", 'a="', "eyJ", "eyJabcdefgh.", "eyJabcdefgh-", "//", "://", "//a", "://a@", "?a="),
    *("password", "password=", "--password ", 'token: "', "-----BEGIN ", "ERROR: ", "level", "reason="),
    "Could not read from remote repositoryinvalid format",
)
ENDS = ("", "\n\x1b!")

# What reads a text by hand, or by several expressions. A function that is missing here is named by a test below.
READERS: dict[str, Run] = {
    "dashboard.alerts.viewmodel.runbook_html": runbook_html,
    "dashboard.logs.viewmodels.ansi.ansi_html": ansi_html,
    "dashboard.logs.viewmodels.ansi.last_state": last_state,
    "dashboard.logs.viewmodels.ansi.plain": plain,
    "grid.diagnosis.loglevels.level_of": level_of,
    "dashboard.logs.viewmodels.log_lines.parse_cursor": parse_cursor,
    "dashboard.palette.viewmodel._begins_word": PaletteQuery("a- aa").rank,
    "grid.diagnosis.exits.CANNOT_START": CANNOT_START.find,
    "grid.diagnosis.logfindings.LogTable": LogTable(BUILT_IN).findings,
    "grid.diagnosis.scheduling._counted": counted_reasons,
    "grid.edge.logs._fields": _fields,
    "grid.diagnosis.refusedvalues.limit_range": lambda text: explain_refusal(f"maximum cpu usage per Pod is 1, {text}"),
    "grid.diagnosis.refusedvalues.invalid": lambda text: explain_refusal(f'Pod "a" is invalid: {text}'),
    "grid.diagnosis.remotetroubles.explain": explain,
    "grid.diagnosis.remotetroubles.is_about_host_key": is_about_host_key,
    "grid.diagnosis.remotetroubles.scrubbed": scrubbed,
    "grid.files.repositories.is_revision": is_revision,
    "grid.core.labels.label_value": label_value,
    "grid.environments.buildjobs._pip_error": last_error,
    "grid.core.logstamps.stamped": lambda text: stamped(text.encode(errors="replace")),
    "grid.kube.redaction.Redactor": Redactor(["aaaaaaaa", "-- -- --", "hunter22"]).text,
    "grid.core.requirementlines.parse_requirements": parse_requirements,
    "grid.sandbox.apiserver.selectors._tokens": lambda text: _or_refused(parse_labels, text),
    "grid.sandbox.kubelet.environment.expand": lambda text: expand(text, {"A": "1"}),
    "grid.sandbox.kubelet.mounts.rewrite": Mounts({"/mnt/project": "/a", "/data": "/b"}).rewrite,
}
# What searches something else than a text of people's, and why it may.
NOT_READERS = {
    "grid.core.regexes.finditer": "each expression is run",
    "grid.core.regexes.sub": "each expression is run",
    "grid.core.regexes.split": "each expression is run",
    "grid.core.regexes.findall": "each expression is run",
    "grid.sandbox.kubelet.logfiles._tail": "it reads bytes of a file from their end, each once",
    "grid.sandbox.apiserver.patches._ordered": "elements of a list, no text",
}


def seconds_of(run: Run, text: str, times: int) -> float:
    def once() -> float:
        start = time.thread_time()
        run(text)
        return time.thread_time() - start

    return min(once() for _ in range(times))


def is_linear(run: Run, unit: str, end: str, length: int = LENGTH) -> bool:
    """Return whether twice as many characters as `length` take no more than `MOST` times as long."""

    def text(times: int) -> str:
        return unit * (length * times // len(unit)) + end

    long = seconds_of(run, text(2), 1)
    if long < MEASURABLE or long <= MOST * seconds_of(run, text(1), 1):
        return True
    return any(
        seconds_of(run, text(2 * size), 3) <= MOST * seconds_of(run, text(size), 3) for size in SIZES for _ in range(8)
    )


def units_of(pattern: str) -> Iterator[str]:
    """Yield texts of what a pattern speaks of: its words and signs, each, all, and each with the next."""
    words = list(dict.fromkeys(re.findall(r"[A-Za-z]{3,}(?: [a-z]+)*|[^\sA-Za-z0-9\\]", pattern)))[:12]
    yield from (word + blank for word in words for blank in ("", " "))
    yield from (first + second for first, second in pairwise(words))
    yield "".join(words) or pattern
    yield " ".join(words) + "\n"


def uses_of(expression: Expression) -> Iterator[tuple[Run, int]]:
    """Yield what is done with an expression, and on how many characters it shows. What is found again and again is sought a number of times
    that grows with the text: if one search looks far ahead of what it finds, they are quadratic together."""
    yield expression.fullmatch, LENGTH
    if isinstance(expression, RepeatedExpression):
        yield lambda text: deque(islice(expression.finditer(text), len(text) // 100), maxlen=0), 4 * LENGTH
    else:
        yield expression.search, LENGTH


def slow(run: Run, units: Iterable[str], ends: Iterable[str] = (ENDS[1],), length: int = LENGTH) -> list[str]:
    return [f"{unit!r}{end!r}" for unit in units for end in ends if not is_linear(run, unit, end, length)]


def load_all() -> None:
    """Import the modules that make expressions."""
    for file in sources():
        if re.search(r"\bgrid\.core\.regexes import|\bRuleTable\(", file.read_text()):
            import_module(module_of(file))


def sources() -> list[Path]:
    return sorted(file for folder in ("grid", "dashboard") for file in (ROOT / folder).rglob("*.py"))


def module_of(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts)


def _or_refused(run: Run, text: str) -> None:
    with suppress(Exception):  # a refusal is an answer
        run(text)


def test_each_expression_takes_linear_time_on_hostile_text() -> None:
    load_all()
    assert len(EXPRESSIONS) > 200
    wrong = {
        repr(expression): texts
        for expression in dict.fromkeys(EXPRESSIONS)
        for run, length in uses_of(expression)
        if (texts := slow(run, (*CLASSES, *units_of(expression.pattern)), length=length))
    }
    assert wrong == {}


@pytest.mark.parametrize("name", READERS)
def test_text_readers_take_linear_time_on_hostile_text(name: str) -> None:
    assert slow(READERS[name], CLASSES, ENDS) == []


def test_django_validators_take_linear_time_on_hostile_text() -> None:
    """Migrations name them, so they stay Python's."""
    patterns = [
        re.compile(validator.regex).pattern
        for validator in vars(fields).values()
        if isinstance(validator, RegexValidator)
    ]
    assert len(patterns) > 3
    for pattern in patterns:
        assert slow(re.compile(pattern).search, (*CLASSES, *(f"/{unit}" for unit in CLASSES), *units_of(pattern))) == []


def test_each_function_that_reads_text_by_hand_is_run() -> None:
    scanners = {name for file in sources() for name in _scanners(file)}
    assert scanners <= READERS.keys() | NOT_READERS.keys(), "add it to READERS"


def _scanners(file: Path) -> Iterator[str]:
    """Yield the functions that go on searching where they found something: by `finditer`, or in a loop by `find` and the like."""
    text = file.read_text()
    if not re.search(r"\bfinditer\(|\bwhile\b", text):
        return
    for function in ast.walk(ast.parse(text)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            loops = [node for node in ast.walk(function) if isinstance(node, ast.While)]
            if "finditer" in _called(function) or any(_called(loop) & {"find", "rfind", "index"} for loop in loops):
                yield f"{module_of(file)}.{function.name}"


def _called(tree: ast.AST) -> set[str]:
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return {called.attr for called in calls if isinstance(called, ast.Attribute)}


NAMED = r"[\w.-]*(?:password|passwd|pwd|secret|token|credential|api[_-]?key|access[_-]?key|private[_-]?key)[\w.-]*"


@pytest.mark.parametrize(
    ("pattern", "unit", "length"),
    [
        (r"(?:\x1b[\]P^_X]|[\x9d\x90\x9e\x9f\x98])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c|$)|\x1b[ -/]*[0-~]", "\x9d", 300),
        (rf"(?i)(\b{NAMED}[\"']?\s*[=:]\s*|--?{NAMED}\s+)(\"[^\"\n]*\"|'[^'\n]*'|[^\s\"',;&]+)", "a.", 150),
        (r"\beyJ[\w-]{8,}\.[\w-]{4,}\.[\w-]*", "eyJabcdefgh-", 1200),
        (r"(?i)REMOTE HOST IDENTIFICATION HAS CHANGED|Offending .* key", "Offending ", LENGTH),
    ],
    ids=["ansi", "named", "token", "remote"],
)
def test_known_catastrophic_python_expression_is_told(pattern: str, unit: str, length: int) -> None:
    assert unit in (*CLASSES, *units_of(pattern))
    assert is_told(re.compile(pattern).search, unit, length)


def is_told(run: Run, unit: str, length: int) -> bool:
    """Return whether it is told at least once, for each time may be spoilt by what else the machine does."""
    return any(not is_linear(run, unit, ENDS[1], length) for _ in range(5))


def test_expression_that_looks_ahead_repeatedly_is_told() -> None:
    """RE2 alone is no cure: each search is linear, all of them together are not."""
    expression = RepeatedExpression("a.*b|a")
    EXPRESSIONS.remove(expression)
    assert any(is_told(run, "a", length // 2) for run, length in uses_of(expression))
