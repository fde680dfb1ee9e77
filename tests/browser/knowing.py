"""What the browser tests of the knowledge base put on the stage: a job that fails after it has written some lines."""

from datetime import UTC, datetime

from asgiref.sync import sync_to_async

from grid.core.reasons import Reader
from grid.diagnosis import logfindings
from grid.logs import knowledge
from grid.models import (
    Environment,
    Execution,
    ExecutionLog,
    HardwareTier,
    KnowledgeEntry,
    LifecycleEntry,
    LogOccurrence,
    Project,
    User,
)
from tests.browser.server import Stage
from tests.support.frozen import on_tier


async def nothing_known(stage: Stage) -> None:
    """Only the built-in entries are in force, and nothing was found."""
    await sync_to_async(_forget)()


def _forget() -> None:
    KnowledgeEntry.objects.all().delete()
    LogOccurrence.objects.all().delete()
    knowledge.refresh()


async def fail(stage: Stage, log: str) -> str:
    """A job of alice has ended with an error, and what the controller would find in its log is kept. Return its id."""
    return await sync_to_async(_fail)(log)


def _fail(log: str) -> str:
    now, findings = datetime.now(UTC), logfindings.findings(log)
    owner, tier = User.objects.get(username="alice"), HardwareTier.objects.get(pk="small")
    job = Execution.objects.create(
        owner=owner,
        project=Project.objects.get(pk="churn"),
        environment=Environment.objects.order_by("pk")[0],
        kind="job",
        title="Nightly training",
        state="failed",
        message=f"The program ended with an error: exit code 1. {findings[0].meaning} {findings[0].cure}",
        requested_at=now,
        state_since=now,
        ended_at=now,
        settled_at=now,
        **on_tier(tier),
    )
    LifecycleEntry.objects.create(
        execution=job, at=now, to_state="failed", reason="exit_code", message=job.words(Reader("", is_owner=True))
    )
    ExecutionLog.objects.create(execution=job, text=log, at=now)
    knowledge.record(job.pk, findings, now)
    return job.pk
