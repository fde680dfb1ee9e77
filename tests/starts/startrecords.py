"""Records of starts, and how the database reads them."""

from typing import Any

from django.db import connection

from grid.models import StartUp
from tests.support.shop import NOW


def start_up(execution_id: str, **fields: Any) -> StartUp:
    """Not stored yet; of a shop's tier and environment."""
    usual: dict[str, Any] = {
        "ran": True,
        "kind": "job",
        "tier_id": "small",
        "environment_id": "jupyterlab",
        "node_pool": "default",
        "image": "lab:1",
        "at": NOW,
        "total": 10,
    }
    return StartUp(execution_id=execution_id, **usual | fields)


def plan_of(sql: str) -> str:
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN {'QUERY PLAN ' if connection.vendor == 'sqlite' else ''}{sql}")
        return "\n".join(str(row[-1]) for row in cursor.fetchall())
