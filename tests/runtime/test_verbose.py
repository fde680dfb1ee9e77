"""A process logs more for a time: only its own lines, only those that are wanted, and until then whatever the database says."""

import logging
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime

import pytest
from django.db import OperationalError

from grid.logs.verboselogging import VerboseTimes
from grid.observability import logcontext
from grid.observability.logcontext import of_execution
from grid.runtime.periodictasks import VerbosityFollower


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What a handler with our filter logs."""
    logged: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            logged.append(record.getMessage())

    handler, root = Handler(), logging.getLogger()
    handler.addFilter(logcontext.Verbosity())
    monkeypatch.setattr(root, "level", logging.INFO)
    root.addHandler(handler)
    yield logged
    root.removeHandler(handler)
    logcontext.apply(0.0, {}, now=0.0)


def log(text: str) -> None:
    logging.getLogger("grid.executions.x").debug(text)
    logging.getLogger("django.db.backends").debug("SELECT %s", "a secret")


def test_component_logs_its_lines_without_statement_values(lines: list[str]) -> None:
    log("before")
    logcontext.apply(4e9, {}, now=0.0)
    log("within")
    logcontext.apply(4e9, {}, now=5e9)
    log("after")
    assert lines == ["within"]


def test_verbose_execution_logs_only_its_own_lines(lines: list[str]) -> None:
    logcontext.apply(0.0, {"abc": 4e9, "over": 1.0}, now=2.0)
    with of_execution("abc"):
        log("asked the API server")
    with of_execution("def"):
        log("asked for another")
    log("execution=abc admitted")
    log("execution=over admitted")
    logging.getLogger("grid.executions.x").info("as ever")
    assert lines == ["asked the API server", "execution=abc admitted", "as ever"]


async def test_verbose_logging_ends_in_time_despite_database_outage(lines: list[str]) -> None:
    now = [1000.0]
    answers: list[VerboseTimes | Exception] = [VerboseTimes(1500.0), OperationalError("gone"), OperationalError("gone")]

    async def run(work: object, component: str, at: datetime) -> VerboseTimes:
        assert (component, at.timestamp()) == ("web", now[0])
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    follower = VerbosityFollower("web", run, clock=lambda: now[0])
    logger = logging.getLogger("grid")
    await follower.run_once()
    assert logger.level == logging.DEBUG
    log("written today, long after the hour")  # between its end and the next look
    assert lines[-1].startswith("verbose logs changed component=web all=True")
    now[0] = 1400.0
    with suppress(OperationalError):
        await follower.run_once()
    assert logger.level == logging.DEBUG
    now[0] = 1501.0
    with suppress(OperationalError):
        await follower.run_once()
    assert logger.level == logging.NOTSET
