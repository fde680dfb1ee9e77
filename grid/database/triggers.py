"""Database triggers that report what is written; `grid.database.changefeed` listens to them.

They report written executions, jobs with their runs and schedules, changed roles in projects, whose notifications changed, launches to
check, and changed names that lists show. They are dropped before migrations and created after them, because a column that a trigger
names cannot be changed, and because SQLite recreates a changed table without its triggers.
"""

from collections.abc import Collection, Iterator
from typing import Any

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

CHANNEL = "compute_grid_changes"
TABLE = "grid_written"
KEPT = 10_000  # rows of SQLite's table, for a reader that paused
EVERYTHING = "everything"

# Table, text to report for `{row}`, operations, and the only columns that matter. One entry for each table and operation.
_WRITTEN = ("INSERT", "UPDATE", "DELETE")
_SAID = (
    ("grid_execution", "'execution:' || {row}.id", _WRITTEN, ()),
    ("grid_job", "'jobs-of:' || {row}.owner_id", _WRITTEN, ()),
    ("grid_jobrun", "'job:' || {row}.job_id", _WRITTEN, ()),
    ("grid_schedule", "'job:' || {row}.job_id", _WRITTEN, ()),
    ("grid_membership", "'project:' || {row}.project_id", _WRITTEN, ()),
    ("grid_notification", "'person:' || {row}.user_id", _WRITTEN, ()),
    ("grid_launchcheck", "'check:' || {row}.id", ("INSERT",), ()),
    ("grid_launchcheck", "'check:' || {row}.id", ("UPDATE",), ("asked_at",)),
    ("grid_project", f"'{EVERYTHING}'", ("UPDATE",), ("name",)),
    ("grid_user", f"'{EVERYTHING}'", ("UPDATE",), ("username", "is_active")),
    ("grid_hardwaretier", f"'{EVERYTHING}'", ("UPDATE",), ("name", "maximum_simultaneous")),
    ("grid_environment", f"'{EVERYTHING}'", ("UPDATE",), ("name",)),
    ("grid_configrecord", f"'{EVERYTHING}'", _WRITTEN, ()),
)
_ENDING = "_said"  # suffix of our triggers' names only
LISTED = {
    "sqlite": f"SELECT name FROM sqlite_master WHERE type = 'trigger' AND name LIKE '%{_ENDING}'",
    # Enabled triggers on tables that a query without a schema name finds.
    "postgresql": "SELECT tgname FROM pg_trigger WHERE tgenabled IN ('O', 'A') AND pg_table_is_visible(tgrelid) "
    f"AND tgname LIKE '%{_ENDING}'",
}
# Waiting for a lock behind a long transaction would make everybody else wait as well.
_LOCK_TIMEOUT = "SET LOCAL lock_timeout = '10s'"


def take_away(using: str, plan: Any = None, **kwargs: Any) -> None:
    """Drop the triggers before migrations, if there are any to run; the feeds then notice that they are missing."""
    connection = connections[using]
    if not plan or connection.vendor not in LISTED:
        return
    present, is_postgresql = _present(connection), connection.vendor == "postgresql"
    for table, _, operations, _ in _SAID:  # one after the other, so that no two tables are locked at once
        with transaction.atomic(using):
            if is_postgresql:
                _execute(connection, _LOCK_TIMEOUT)
            for name in [_name(table, operation) for operation in operations]:
                if name in present:
                    _execute(connection, f"DROP TRIGGER {name}{f' ON {table}' if is_postgresql else ''}")
    if present:
        _say_everything(connection)


def install(using: str, plan: Any = None, **kwargs: Any) -> None:
    """Create the triggers after migrations, or when one is missing. A flush, which sends the same signal, has no plan."""
    connection = connections[using]
    tables = set(connection.introspection.table_names())
    if connection.vendor not in LISTED or not {table for table, *_ in _SAID} <= tables:
        return
    if plan is None:
        if connection.vendor == "postgresql":  # where TRUNCATE fires no row trigger
            _say_everything(connection)
        return
    if names() <= _present(connection) and (connection.vendor != "sqlite" or TABLE in tables):
        return
    for statements in _statements(connection.vendor):
        with transaction.atomic(using):
            for statement in statements:
                _execute(connection, statement)
    # Writes without triggers were not reported.
    _say_everything(connection)


def _say_everything(connection: BaseDatabaseWrapper) -> None:
    if connection.vendor == "postgresql":
        _execute(connection, f"SELECT pg_notify('{CHANNEL}', '{EVERYTHING}')")
    else:
        _execute(connection, f"INSERT INTO {TABLE} (what) VALUES ('{EVERYTHING}')")


def names() -> set[str]:
    return {_name(table, operation) for table, _, operations, _ in _SAID for operation in operations}


def _name(table: str, operation: str) -> str:
    return f"{table}_{operation.lower()}{_ENDING}"


def _present(connection: BaseDatabaseWrapper) -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute(LISTED[connection.vendor])
        return {name for (name,) in cursor.fetchall()}


def _execute(connection: BaseDatabaseWrapper, statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def _statements(vendor: str) -> Iterator[list[str]]:
    """Yield the statements that create the triggers; each list is one transaction."""
    if vendor == "sqlite":
        yield [f"CREATE TABLE IF NOT EXISTS {TABLE} (number INTEGER PRIMARY KEY, what TEXT NOT NULL)"]
    make = _sqlite if vendor == "sqlite" else _postgresql
    for table, text, operations, columns in _SAID:
        yield [statement for each in operations for statement in make(table, text, each, columns)]


def _sqlite(table: str, text: str, operation: str, columns: Collection[str]) -> list[str]:
    name = _name(table, operation)
    differs = " OR ".join(f"OLD.{column} IS NOT NEW.{column}" for column in columns)
    trigger = f"""
        CREATE TRIGGER {name} AFTER {operation} ON {table} {f"WHEN {differs}" if differs else ""}
        BEGIN
            INSERT INTO {TABLE} (what) {" UNION ".join(f"SELECT {what}" for what in _each(text, operation))};
            DELETE FROM {TABLE} WHERE number <= (SELECT max(number) FROM {TABLE}) - {KEPT};
        END"""
    return [f"DROP TRIGGER IF EXISTS {name}", trigger]


def _postgresql(table: str, text: str, operation: str, columns: Collection[str]) -> list[str]:
    name = _name(table, operation)
    notes = " ".join(f"PERFORM pg_notify('{CHANNEL}', {what});" for what in _each(text, operation))
    differs = " OR ".join(f"OLD.{column} IS DISTINCT FROM NEW.{column}" for column in columns)
    # The columns are named in the function's body only, so that their type can be changed.
    body = f"IF {differs} THEN {notes} END IF;" if differs else notes
    function = f"""
        CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN {body} RETURN NULL; END $$"""
    trigger = f"CREATE OR REPLACE TRIGGER {name} AFTER {operation} ON {table} FOR EACH ROW EXECUTE FUNCTION {name}()"
    return [_LOCK_TIMEOUT, function, trigger]


def _each(text: str, operation: str) -> list[str]:
    """Return the texts for a row, of an updated row before and after."""
    rows = {"INSERT": ["NEW"], "UPDATE": ["OLD", "NEW"], "DELETE": ["OLD"]}[operation]
    return list(dict.fromkeys(text.format(row=row) for row in rows))
