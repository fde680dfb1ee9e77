"""Joins the rooms: what each adds to others is registered here, once, when Django starts.

A room below never imports the rooms that add to it: it offers a registry, and this module is the only one that knows both.
"""

from grid.announcements import maintenance
from grid.clusters import reasons as cluster_reasons
from grid.clusters.kind import ClusterKind
from grid.core import reasons
from grid.environments import revisions
from grid.executions import kinds, lifecycle, reasons as execution_reasons, request
from grid.executions.podkind import PodKind
from grid.files import stored_remotes
from grid.files.filesaving import FileSaving
from grid.jobs import runsteps, schedulehistory
from grid.jobs.jobrows import JobKind
from grid.logs import knowledge
from grid.models import Kind
from grid.notifications import outbox
from grid.projects import departures
from grid.queue import gate
from grid.sharing import sharing
from grid.starts import startups
from grid.usage import usage
from grid.usage.budgets import rules as budgets
from grid.workspaces.shutdown import rules as shutdown_rules
from grid.workspaces.workspaces import WorkspaceKind


def compose() -> None:
    """Register what rooms add to executions and to the words of reasons. Doing it twice changes nothing."""
    kinds.register(WorkspaceKind(Kind.WORKSPACE, FileSaving))
    kinds.register(JobKind(Kind.JOB, FileSaving))
    kinds.register(PodKind(Kind.APP, FileSaving))
    kinds.register(ClusterKind(Kind.CLUSTER))
    request.register_check(stored_remotes.wrong_files)
    lifecycle.on_enter(knowledge.keep_log)
    lifecycle.on_enter(startups.record_start)
    lifecycle.on_enter(outbox.record_state)
    lifecycle.on_slots_freed(usage.end_all)
    of_executions = (cluster_reasons, execution_reasons, runsteps, schedulehistory, shutdown_rules)
    for words in (*of_executions, budgets, departures, gate, maintenance, revisions, sharing):
        reasons.register(words.SENTENCES)
