"""No query of a decision, a look or a list reads the history of executions: the database's own plans say so."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django.fixtures import Settings

from dashboard.accounts.people import work_in
from dashboard.audit.viewmodel import AuditView
from dashboard.audit.views import read_audit
from dashboard.executions.history import Position, ended_choices, ended_page, latest_ended
from dashboard.executions.launch_facts import last_launches, running_by_tier, slots_of
from dashboard.executions.records import read_record
from dashboard.executions.viewmodels.executions_view import ExecutionsView
from dashboard.jobs.job_records import jobs_of, latest_runs_of, read_job, read_run, runs_of
from dashboard.nodes.records import admin_facts, environments_never_started, failed_on
from dashboard.notifications.records import latest_unread, mark_read, notifications, outward_channels_view, unread_count
from dashboard.palette.views import PaletteCaches, find
from dashboard.platformhealth.records import database_problems
from dashboard.projects.project_records import active_in
from dashboard.secrets.views import uses_of
from dashboard.shell.access import Viewer, viewer_of
from dashboard.tiers.tier_records import outgrown
from dashboard.usage.size_records import last_runs
from dashboard.workspaces.workspace_records import executions_of, has_stopped, latest_of, page_of, read_workspace
from grid.audit.entries import write_entry
from grid.audit.sealing import seal, unsealed_count, verify
from grid.clusters import attached
from grid.configuration import GLOBAL_QUEUE_LIMIT
from grid.controller import pollreads, retention
from grid.database.periodic import which_exist
from grid.environments import revisions
from grid.executions import ledger
from grid.executions.request import submit
from grid.jobs import jobruns, jobs, scheduler, schedules
from grid.jobs.runmetrics import store
from grid.jobs.runmetrics.lines import Measurements
from grid.jobs.runmetrics.store import KnownPlace
from grid.logs.logplace import LogPlace
from grid.models import (
    ClusterSample,
    ConfigRecord,
    Delivery,
    Execution,
    ExecutionLog,
    HardwareTier,
    LifecycleEntry,
    State,
    StoredSecret,
    User,
    WaitPrediction,
)
from grid.models.dataplane import LOCAL
from grid.notifications import channels
from grid.notifications.deliveries import record_result, take_due
from grid.notifications.letters import SENT, SendResult
from grid.projects import departures
from grid.queue.launches import why_not_launch
from grid.queue.snapshot import held_slots
from grid.queue.wait_estimate import outcomes
from grid.queue.wait_estimate.observing import Observed
from grid.queue.wait_estimate.outcomes import start_waits
from grid.runtime import poolsamples
from grid.runtime.executionrows import read_rows, read_versions
from grid.tiers.rushplans import taken_since
from grid.usage import dailyusage, peaks, usage
from grid.usage.intervals import Changes, Interval
from grid.workspaces import workspaces
from grid.workspaces.shutdown.records import carry_out, store_looks, watched
from grid.workspaces.shutdown.rules import Announce, Look, LookOutcome, PlannedStop
from tests.support.shop import NOW, Shop, admit_waiting, run_due, shop as shop

MEASURED = Measurements({"loss": [(1, 0.5)]})
# Of the tables that grow with history.
_TABLES = (
    "execution|executionlog|lifecycleentry|clustersample|usageinterval|auditentry|workspace|job|jobrun|schedule"
    "|notification|delivery|stopwarning|stopplan|workspacegrant|startup|runmetric|metricreading|waitprediction"
)
_SCAN = re.compile(rf"(?:SCAN|Seq Scan on) grid_(?:{_TABLES})\b(?: USING (?:COVERING )?INDEX (\w+))?")


def _reads_history(sql: str, plan: str) -> bool:
    """Whether a plan reads a table from end to end. What is unsettled or open has an index of its own, and pages a limit."""
    return any(
        not (
            index.startswith(
                ("unsettled", "usage_open", "usage_to_add", "open_runs", "schedules_by_next", "open_predictions")
            )
            or (index.startswith(("history", "audit_by_age")) and "LIMIT" in sql)
        )
        for index in (scan[1] or "" for scan in _SCAN.finditer(plan))
    )


def scans(queries: CaptureQueriesContext) -> Iterator[str]:
    """Yield each captured query that reads a whole table of history."""
    for query in queries.captured_queries:
        sql = query["sql"]
        if not sql.startswith(("SELECT", "UPDATE", "DELETE")):
            continue
        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                # A table of three rows is cheapest read whole; what it would do with a million is asked.
                cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute(f"EXPLAIN {'QUERY PLAN ' if connection.vendor == 'sqlite' else ''}{sql}")
            plan = "\n".join(str(row[-1]) for row in cursor.fetchall())
        if _reads_history(sql, plan):
            yield f"{sql}\n{plan}"


ENDED_ID = "ended"  # of an execution, and of its workspace
ENDED = ExecutionsView(show="ended")
LATER = NOW + timedelta(days=3000)
BEFORE = str(Position(NOW, "zzz"))


def viewer(user: User) -> Viewer:
    known = viewer_of(user)
    assert known is not None
    return known


@pytest.fixture
def history(shop: Shop) -> Shop:
    """Two that wait, one that runs with a pod on a node, one that has ended long before LATER, with all that is kept of one."""
    running, *_ = (shop.launch(after=second) for second in range(3))
    ended = submit(shop.request(), gate=why_not_launch, now=NOW, execution_id=ENDED_ID)
    Execution.objects.filter(pk=running.pk).update(state=State.RUNNING, slots_reserved_at=NOW)
    Execution.objects.filter(pk=ended.pk).update(state=State.STOPPED, ended_at=NOW, settled_at=NOW)
    pods = {running.pk: None, ended.pk: NOW}
    for id, end in pods.items():
        usage.record(id, Changes((Interval(id, id, "node-1", False, NOW, end),)))
    ExecutionLog.objects.create(execution=ended, text="the end", at=NOW)
    ClusterSample.objects.create(execution=ended, at=NOW, ready=1, wanted=1)
    store.add(ended.pk, KnownPlace(), LogPlace("2026-02-02T10:00:00", 1, "2026-02-02T10:00:00.0"), MEASURED, now=NOW)
    LifecycleEntry.objects.create(execution=ended, at=NOW, source="kubernetes", event_uid="e", reason="Pulled")
    return shop


def announce_stops(shop: Shop) -> None:
    shop.tier.idle_minutes, shop.tier.lifetime_hours = 60, 1
    shop.tier.save()
    Execution.objects.unsettled().filter(state=State.RUNNING).update(started_at=NOW)
    runs = watched(LOCAL)
    outcome = LookOutcome(Look(is_known=True), "no kernel busy")
    for run in store_looks({run.id: outcome for run in runs}, runs, NOW):
        assert carry_out(run, Announce(PlannedStop("idle", LATER)), NOW)


def read_on() -> None:
    store.add(ENDED_ID, store.read_place(ENDED_ID), LogPlace("2026-02-02T10:00:01", 1), MEASURED, now=NOW)


def expect_waits() -> None:
    """Predict, and note that one runs and another has ended."""
    outcomes.keep_predictions(LOCAL, Observed(), now=LATER)
    ids = [ENDED_ID, *Execution.objects.unsettled().values_list("pk", flat=True)]
    WaitPrediction.objects.bulk_create(WaitPrediction(execution_id=id, stage="room", made_at=NOW) for id in ids)
    Execution.objects.unsettled().filter(state=State.RUNNING).update(started_at=LATER)
    outcomes.keep_predictions(LOCAL, Observed(), now=LATER)


def use_a_node(execution: Execution) -> None:
    usage.record(execution.pk, Changes((Interval("pod", "pod", "node-1", False, NOW, None),)))
    usage.record(execution.pk, Changes(ended={"pod": NOW}))
    usage.end_all(execution.pk, NOW)


def used(**by: object) -> object:
    """The sums of a day, with what is still open."""
    return dailyusage.held(("day", "tier_id", "kind"), NOW.date(), NOW.date(), NOW, **by)


def launch_into_a_full_queue(shop: Shop) -> None:
    """With a pair in it, so that the user's line is read as well."""
    shop.launch_with_cluster(after=30)
    ConfigRecord.objects.create(key=GLOBAL_QUEUE_LIMIT.key, value="0")
    shop.launch(after=60)


def a_job(shop: Shop) -> str:
    """Return the id of a job with a run and a sweep."""
    id = submit(shop.request(kind="job", environment=shop.job), gate=why_not_launch, now=NOW, execution_id="job").pk
    jobs.start_sweep(id, [{"a": "1"}, {"a": "2"}], by="alice", now=NOW)
    return id


def asks_for_tests(shop: Shop) -> User:
    """Return somebody who can be told by each channel, and has asked for a test of each."""
    owner = shop.people.owner
    owner.email = "alice@example.com"
    owner.save()
    channels.set_target(owner, "https://example.com/")
    for channel in channels.external_channels(owner):
        channels.ask_for_test(owner, channel, now=NOW)
    return owner


def send_all(shop: Shop, result: SendResult) -> None:
    """Send tests, and what else is due: a mail that tells of two, and a post."""
    owner = asks_for_tests(shop)
    for event, channel in (("failed", "email"), ("started", "email"), ("failed", "webhook")):
        Delivery.objects.create(user=owner, channel=channel, payload={"event": event}, at=NOW, next_try_at=NOW)
    for minutes in (0, 2, 4, 8):
        now = NOW + timedelta(minutes=minutes)
        for channel in Delivery.Channel:
            for parcel in take_due(channel, busy=[0], at_most=9, now=now):
                record_result(parcel, result, now=now)


def run_a_schedule(shop: Shop) -> None:
    """Run a schedule twice, the second time while the first run has not ended."""
    settings = schedules.ScheduleSettings(cron="* * * * *", overlap="replace")
    schedule = schedules.create(a_job(shop), settings, now=NOW)
    for minutes in (1, 2):
        run_due(now=NOW + timedelta(minutes=minutes))
    schedules.delete(schedule.pk, by="alice", now=LATER)


def audit_pages(shop: Shop) -> None:
    for number in range(3):
        write_entry(shop.people.owner, shop.tier, {"number": [0, number]}, at=NOW)
    for query in ({}, {"who": "alice"}, {"kind": "tier"}, {"action": "changed"}, {"text": "x", "since": "2026-01-01"}):
        read_audit(AuditView.parse({"before": f"{LATER.isoformat()}~9", "until": "2030-01-01"} | query), at_most=1)
    read_audit(AuditView(who="alice", kind="hardwaretier", action="changed"), searched=1)


WORK: dict[str, Callable[[Shop], object]] = {
    "clusters that end with their parents": lambda shop: attached.stop_with_parents(LOCAL, now=NOW),
    "people who left": lambda shop: departures.stop_departed(LOCAL, now=NOW),
    "who uses the revisions of an environment": lambda shop: revisions.uses_of(shop.workspace.pk),
    "the controller's poll": lambda shop: ledger.row_versions(LOCAL),
    "lifetimes and idleness": lambda shop: announce_stops(shop),
    "what there is to do, for the metrics": lambda shop: ledger.unsettled_work([LOCAL], now=LATER),
    "whether a loss of access is recorded": lambda shop: departures.has_losses(LOCAL),
    "whether time has decided anything": lambda shop: pollreads.is_anything_due(LOCAL, ledger.timeouts(), now=LATER),
    "which periodic tasks have work": lambda shop: which_exist([start_waits(LOCAL)]),
    "who is in a state for too long": lambda shop: ledger.overdue(LOCAL, now=LATER),
    "expected waits and what came of them": lambda shop: expect_waits(),
    "how right expected waits were": lambda shop: outcomes.read_accuracy(),
    "old expected waits": lambda shop: outcomes.drop_predictions(LATER, 200),
    "running clusters": lambda shop: ledger.running_clusters(LOCAL, {}),
    "one execution": lambda shop: ledger.read(Execution.objects.unsettled()[0].pk),
    "the cluster of a workspace": lambda shop: ledger.attached_cluster(Execution.objects.unsettled()[0].pk),
    "admission": lambda shop: admit_waiting(LOCAL, now=NOW + timedelta(minutes=1)),
    "a launch": lambda shop: shop.launch(after=60),
    "a launch into a full queue": launch_into_a_full_queue,
    "whether a list has changed": lambda shop: read_versions(NOW),
    "a list": lambda shop: read_rows(NOW),
    "what somebody launched last": lambda shop: last_launches(shop.people.owner),
    "free slots": lambda shop: slots_of(shop.people.owner),
    "places of a rush plan that launches have taken": lambda shop: taken_since(shop.tier.pk, NOW),
    "what runs on a tier": lambda shop: running_by_tier(held_slots()),
    "the history of all": lambda shop: ended_page(viewer(shop.people.operator), ENDED),
    "what failed on a node": lambda shop: failed_on("node-a", NOW),
    "the history of a person": lambda shop: ended_page(viewer(shop.people.teammate), ENDED),
    "the history, filtered": lambda shop: ended_page(
        viewer(shop.people.operator), replace(ENDED, text="x", user="bob")
    ),
    "the history further back": lambda shop: ended_page(viewer(shop.people.owner), replace(ENDED, before=BEFORE)),
    "the history forward": lambda shop: ended_page(viewer(shop.people.owner), replace(ENDED, after=BEFORE)),
    "who would no longer fit": lambda shop: outgrown(HardwareTier.objects.all(), {}, {}),
    "what the overview tells admins": lambda shop: admin_facts(None, environments_never_started(), None),
    "what the overview tells of the database": lambda shop: database_problems(),
    "what the history can be filtered by": lambda shop: ended_choices(viewer(shop.people.teammate), ENDED),
    "the palette of all": lambda shop: find(viewer(shop.people.admin), "x", PaletteCaches([], [])),
    "the palette of a person": lambda shop: find(viewer(shop.people.teammate), "x", PaletteCaches([], [])),
    "the palette, by an id": lambda shop: latest_ended(viewer(shop.people.owner), [f"workspace-{ENDED_ID}"]),
    "a person's workspaces": lambda shop: latest_of(shop.people.owner.pk, 9),
    "a page of workspaces": lambda shop: page_of(shop.people.owner.pk, ENDED_ID),
    "whether somebody has stopped workspaces": lambda shop: has_stopped(shop.people.owner.pk),
    "a workspace's page": lambda shop: read_workspace(ENDED_ID),
    "a workspace's executions": lambda shop: executions_of(ENDED_ID, ENDED_ID),
    "resuming": lambda shop: workspaces.resume(
        ENDED_ID, environment=shop.workspace, tier=shop.tier, with_cluster=True, now=NOW + timedelta(minutes=1)
    ),
    "deleting a workspace": lambda shop: workspaces.delete(ENDED_ID, now=NOW),
    "who uses a secret": lambda shop: uses_of(StoredSecret.objects.create(name="A", project=shop.project)),
    "who uses one's own secret": lambda shop: uses_of(StoredSecret.objects.create(name="A", owner=shop.people.owner)),
    "what a member has in a project": lambda shop: work_in(shop.project, shop.people.owner),
    "jobs whose runs are due": lambda shop: (jobruns.jobs_due(NOW), jobruns.all_jobs_due(NOW)),
    "jobs of what has ended": lambda shop: jobruns.jobs_told([ENDED_ID]),
    "the next steps of a job's runs": lambda shop: jobruns.advance(a_job(shop), now=LATER),
    "schedules that are due": lambda shop: run_a_schedule(shop),
    "schedules of people who left": lambda shop: scheduler.pause_departed(now=NOW),
    "what runs in a project": lambda shop: active_in(shop.project.pk, 9),
    "the last runs in a project": lambda shop: (a_job(shop), latest_runs_of(shop.project.pk, 8, NOW, 0)),
    "a person's jobs": lambda shop: (a_job(shop), jobs_of(shop.people.owner.pk, "", NOW)),
    "a job's page": lambda shop: (read_job(a_job(shop)), runs_of("job", sweep="", before=9, now=NOW)),
    "two runs": lambda shop: read_run(a_job(shop), 1, NOW),
    "old runs": lambda shop: retention.drop_runs(LATER, 200),
    "an execution's page": lambda shop: read_record(Execution.objects.unsettled()[0].pk),
    "the usage of an execution that begins, goes on and ends": lambda shop: use_a_node(shop.launch(after=60)),
    "what a person's last runs used": lambda shop: last_runs(shop.people.owner.pk, Execution.objects.unsettled()[0]),
    "the peaks of executions": lambda shop: peaks.write(peaks.read([ENDED_ID])),
    "what a person used": lambda shop: used(owner=shop.people.owner),
    "what a project used": lambda shop: used(project=shop.project),
    "orphan intervals": lambda shop: retention.end_orphan_intervals(LATER, 200),
    "old logs": lambda shop: retention.drop_logs(LATER, 200),
    "old samples": lambda shop: retention.drop_samples(LATER, 200),
    "old metrics": lambda shop: retention.drop_metrics(LATER, 200),
    "metrics of a run": lambda shop: read_on(),
    "old lifecycle entries": lambda shop: retention.drop_lifecycle_entries(LATER, 200),
    "old audit entries": lambda shop: retention.drop_audit_entries(LATER, 200),
    "the audit log": lambda shop: audit_pages(shop),
    "the audit log is sealed": lambda shop: (
        write_entry(shop.people.owner, shop.tier, {}),
        seal(NOW),
        unsealed_count(),
    ),
    "the audit log is verified": lambda shop: verify(),
    "the executions in a sample of the pools": lambda shop: poolsamples.store(1, {"default": poolsamples.PoolTally()}),
    "a channel out of the page, and a test of it": asks_for_tests,
    "what is due is sent": lambda shop: send_all(shop, SENT),
    "what is due is not sent": lambda shop: send_all(shop, SendResult("It hangs.")),
    "what became of a person's latest": lambda shop: outward_channels_view(asks_for_tests(shop), NOW),
    "a person's notifications": lambda shop: notifications(shop.people.owner.pk, start=50, at_most=50),
    "what a person has not read": lambda shop: (
        latest_unread(shop.people.owner.pk),
        unread_count(shop.people.owner.pk),
    ),
    "all is read": lambda shop: (mark_read(shop.people.owner.pk), mark_read(shop.people.owner.pk, [1, 2])),
    "old notifications": lambda shop: retention.drop_notifications(LATER, 200),
    "old deliveries": lambda shop: retention.drop_deliveries(LATER, 200),
    "old executions": lambda shop: [retention.drop_executions(LATER, 200) for _ in range(5)],
}


@pytest.mark.parametrize("work", WORK)
def test_history_is_not_scanned(history: Shop, settings: Settings, work: str) -> None:
    settings.EMAIL_HOST, settings.DEFAULT_FROM_EMAIL = "mail.example.com", "grid@example.com"
    with CaptureQueriesContext(connection) as queries:
        WORK[work](history)
    assert len(queries) > 0
    assert list(scans(queries)) == []


def test_a_scan_of_history_would_be_found(history: Shop) -> None:
    with CaptureQueriesContext(connection) as queries:
        list(Execution.objects.filter(state=State.STOPPED).order_by())
    assert len(list(scans(queries))) == 1
