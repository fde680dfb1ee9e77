"""What the browser tests of the audit log put on the stage: entries of several people, all but the latest one sealed."""

from datetime import UTC, datetime, timedelta

from asgiref.sync import sync_to_async

from grid.audit.sealing import seal
from grid.models import AuditChain, AuditEntry
from tests.browser.server import Stage

_PATH = "/archive/2026/data.parquet"
LONG = "a-name-that-is-as-long-as-names-may-become"


def _write() -> None:
    _remove()  # what earlier tests of this stage did
    now = datetime.now(UTC)
    rows = (
        ("ada-admin", "changed", "hardwaretier", "small", "Small", {"cores": ["1", "2"], "kinds": [["job"], ["app"]]}),
        ("ada-admin", "created", "environment", "py", "Python 3.12", {"name": [None, "Python 3.12"]}),
        (LONG, "changed", "project", "churn", "Customer churn", {"f": ["", _PATH]}),
        ("ada-admin", "unlocked", "login", "eve", "eve at 203.0.113.9", {"failures": [12, 0]}),
    )
    for number in range(60):
        columns = ("actor_name", "action", "object_type", "object_id", "object_name", "changes")
        entry = dict(zip(columns, rows[number % len(rows)], strict=True))
        AuditEntry.objects.create(at=now - timedelta(minutes=number), **entry)
        if number == 58:
            while seal(now):
                pass


def _remove() -> None:
    AuditEntry.objects.all().delete()
    AuditChain.objects.all().delete()


async def entries(stage: Stage) -> None:
    await sync_to_async(_write)()


async def nothing(stage: Stage) -> None:
    await sync_to_async(_remove)()
