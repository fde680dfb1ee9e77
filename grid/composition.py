"""Joins the rooms: what each adds to others is registered here, once, when Django starts.

A room below never imports the rooms that add to it: it offers a registry, and this module is the only one that knows both.
"""

from grid.executions import lifecycle
from grid.logs import knowledge
from grid.notifications import outbox
from grid.starts import startdays_store
from grid.usage import usage


def compose() -> None:
    """Register what rooms add to executions. Doing it twice changes nothing."""
    lifecycle.on_enter(knowledge.keep_log)
    lifecycle.on_enter(startdays_store.record_start)
    lifecycle.on_enter(outbox.record_state)
    lifecycle.after_commit(startdays_store.measure_start)
    lifecycle.on_slots_freed(usage.end_all)
