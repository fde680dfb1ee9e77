"""What a support bundle has from the database and the settings; synchronous."""

import csv
import functools
import importlib.metadata
import io
import json
import platform
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import django
from django.conf import settings
from django.core import checks
from django.db import connection
from django.db.models import QuerySet

from dashboard.executions.records import visible_executions
from dashboard.executions.viewmodels.execution import ExecutionRecord
from dashboard.jobs.run_records import ran_with, read_metrics
from dashboard.jobs.viewmodels.runs import record_json
from dashboard.nodes.viewmodels.use_history import Known
from dashboard.platformhealth.records import read_health
from dashboard.shell.access import Viewer
from dashboard.shell.viewmodels.format import spreadsheet_text
from grid.configuration import overrides
from grid.core.reasons import Reader, words_of
from grid.core.translation import gettext as _
from grid.executions.front import access_token, front_key
from grid.executions.spec import ExecutionSpec, parse_spec
from grid.files import stored_remotes as remotes
from grid.kube.objects import Event
from grid.kube.redaction import HIDDEN, Redactor
from grid.models import ClusterSample, Execution, LifecycleEntry, PoolSample, State
from grid.models.dataplane import LOCAL
from grid.secrets import storedsecrets

_QUEUED, _FAILED, _SAMPLES = 500, 200, 10_000  # rows at most
# Settings that say what they are set to; of all others only whether they are set.
_SHOWN = (
    *("DEBUG", "DEMO", "DASHBOARD_ORIGIN", "WORKSPACE_PATHS", "GRID_NAMESPACE", "NODE_POOL_LABEL", "CURRENCY"),
    *("FRONT_IMAGE", "FRONT_CORES", "FRONT_MEMORY", "EXECUTOR_IMAGE", "EXECUTOR_CORES", "EXECUTOR_MEMORY"),
    *("INGRESS_CLASS", "DEMAND_PORT", "TIME_ZONE"),
)
_ONLY_SET = (
    *("SECRET_KEY", "ENCRYPTION_KEYS", "EMAIL_HOST", "EMAIL_HOST_PASSWORD", "PROMETHEUS_URL", "REPOSITORIES"),
    "ALERTMANAGER_URL",
    *("LOG_RECEIVER_URL", "LOG_RECEIVER_AUTHORIZATION"),
)


def secrets_of(executions: Iterable[Execution]) -> list[str]:
    """Return what must not be seen in a bundle of the executions: the installation's secrets, what opens their pages, what is stored for
    them, and what was typed as the values of their variables."""
    secrets = own_secrets()
    stored: set[int] = set()
    projects: set[str] = set()
    for execution in executions:
        secrets += access_token(execution.pk), front_key(execution.pk)
        projects.add(execution.project_id)
        try:
            spec = parse_spec(execution)
        except ValueError:
            continue
        secrets += _typed(spec)
        stored |= {secret.id for secret in spec.secrets}
    return [*secrets, *storedsecrets.readable_values(stored), *remotes.readable_secrets(projects)]


def _typed(spec: ExecutionSpec) -> Iterator[str]:
    """Yield the values of variables and parameters, by line, without those that would hide half of a log: numbers, times and paths,
    unless the variable is named like a secret."""
    job = spec.job.environment if spec.job else {}
    for name, value in (*spec.environment.variables.items(), *job.items()):
        is_named_secret = Redactor().object({name: ""})[name] == HIDDEN
        yield from (line for line in value.splitlines() if is_named_secret or not _is_common(line))


def _is_common(text: str) -> bool:
    """Return whether a text is an absolute path, or a number or time such as 2026-03-04T09:00:00Z."""
    return text.startswith("/") or not any(letter.isalpha() for letter in text.replace("T", "").replace("Z", ""))


def own_secrets() -> list[str]:
    return [
        settings.SECRET_KEY,
        *settings.ENCRYPTION_KEYS,
        settings.EMAIL_HOST_PASSWORD,
        settings.ALERTS_TOKEN,
        settings.LOG_RECEIVER_AUTHORIZATION,
        settings.LOG_RECEIVER_AUTHORIZATION.rpartition(" ")[2],
        str(settings.DATABASES["default"].get("PASSWORD") or ""),
    ]


def record_text(execution_id: str) -> str:
    """Return what an execution ran with as JSON, of what is no job its launch; what somebody typed as values is hidden."""
    ran = ran_with(execution_id)
    if ran is None:
        return _("It can no longer be read.") + "\n"
    record = record_json(ran)
    record |= {typed: dict.fromkeys(record[typed], HIDDEN) for typed in ("variables", "parameters")}
    return json.dumps(record, indent=1, default=str)


def versions_text() -> str:
    database = f"{connection.vendor} {'.'.join(map(str, connection.get_database_version()))}"
    own = (f"Python {platform.python_version()}", f"Django {django.get_version()}", platform.platform(), database)
    return "\n".join((*own, "", *_packages(), ""))


@functools.cache
def _packages() -> list[str]:
    """Each has a file to be read, and none changes under a process."""
    packages = {f"{package.name} {package.version}" for package in importlib.metadata.distributions()}
    return sorted(packages, key=str.lower)


def configuration_text() -> str:
    """Return the settings and the central configuration, without secrets."""
    lines = [f"{name} = {getattr(settings, name)!r}" for name in _SHOWN if hasattr(settings, name)]
    lines += [
        _("{name} is set", name=name) if getattr(settings, name, "") else _("{name} is not set", name=name)
        for name in _ONLY_SET
    ]
    changed = [f"{key} = {value}" for key, value in sorted(overrides().items())] or [_("nothing")]
    return "\n".join((*lines, "", _("Central configuration, where it is not the default:"), *changed, ""))


def checks_text() -> str:
    messages = [f"{message.id or ''} {message.msg}" for message in checks.run_checks()]
    return "\n".join((*(messages or ["nothing to complain of"]), ""))


def queue_text(viewer: Viewer) -> str:
    """Return who waits, as far as the page of the queue shows it to the viewer, and why in that page's words."""
    rows = visible_executions(viewer).filter(settled_at=None, state=State.QUEUED).order_by("requested_at")
    queued = rows.values_list(
        "pk", "kind", "owner__username", "project_id", "tier_id", "requested_at", "reason", "reason_values", "message"
    )[:_QUEUED]
    return _table(
        ("execution", "kind", "owner", "project", "tier", "requested_at", "reason", "message"),
        ((*row[:7], words_of(*row[6:], Reader(row[2], is_owner=False))) for row in queued),
    )


def failures_text(viewer: Viewer) -> str:
    """Return the latest executions that failed, by their program or by the platform, as far as the viewer may see them."""
    return _table(
        ("execution", "kind", "tier", "state", "ended_at", "reason", "message"),
        failed(viewer).values_list("pk", "kind", "tier_id", "state", "ended_at", "reason", "message"),
    )


def failed(viewer: Viewer) -> QuerySet[Execution]:
    """Return those. A failure's message may be the end of a log."""
    rows = visible_executions(viewer).filter(state__in=(State.FAILED, State.ERROR))
    return rows.order_by("-ended_at", "-pk")[:_FAILED]


def kept_lifecycle(record: ExecutionRecord) -> str:
    """Return every entry of the history, with Kubernetes' own words."""
    rows = LifecycleEntry.objects.filter(execution=record.id).order_by("at", "pk")
    reader = record.reader(is_owner=False)
    return _table(
        ("at", "to_state", "reason", "actor", "message"),
        ((row.at, row.to_state, row.reason, row.actor, row.words(reader)) for row in rows),
    )


def events_text(events: Iterable[Event]) -> str:
    return _table(
        ("last_seen", "times", "type", "reason", "object", "reporter", "message"),
        ((e.last_seen, e.times, e.type, e.reason, _about(e), e.reporter, e.message) for e in events),
    )


def use_text(known: Known) -> str:
    """Return what Prometheus knows by minute: cores, bytes, bytes a second and percent."""
    columns = sorted({name for values in known.values() for name in values})
    rows = (
        (datetime.fromtimestamp(60 * minute, UTC), *(values.get(name, "") for name in columns))
        for minute, values in sorted(known.items())
    )
    return _table(("minute", *columns), rows)


def run_metrics_text(execution_id: str) -> str:
    metrics = read_metrics(execution_id).metrics
    points = ((metric.name, *point) for metric in metrics for point in metric.points)
    return _table(("metric", "step", "value"), points)


def cluster_samples_text(execution_id: str) -> str:
    """Return how many workers a cluster had and wanted, and why."""
    return _stored(ClusterSample.objects.filter(execution=execution_id).order_by("-at"))


def pool_samples_text() -> str:
    """Return the samples of all node pools, which are kept for a day."""
    return _stored(PoolSample.objects.order_by("-minute", "pool"))


def platform_text(now: datetime) -> str:
    """Return the versions of the cluster, of what it serves and of the frameworks, and how the platform's services are."""
    stored = read_health(LOCAL, now)
    lines = [f"{version.subject}: {version.sentence}" for version in stored.versions]
    lines += [f"{light.name} ({light.severity}): {light.sentence}" for light in stored.lights]
    return "\n".join((_("As of {checked_at}:", checked_at=stored.checked_at or _("never")), *lines, ""))


def _about(event: Event) -> str:
    about = event.involved_object
    return f"{about.kind} {about.namespace}/{about.name}" if about.namespace else f"{about.kind} {about.name}"


def _stored(rows: QuerySet[Any]) -> str:
    names = [field.attname for field in rows.model._meta.concrete_fields if not field.primary_key]
    return _table(names, rows.values_list(*names)[:_SAMPLES])


def _cell(value: object) -> str:
    """Return a value for a cell; people's texts are computed by no spreadsheet."""
    return value.isoformat() if isinstance(value, datetime) else spreadsheet_text(str(value))


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    out = io.StringIO()
    csv.writer(out).writerows([head, *(map(_cell, row) for row in rows)])
    return out.getvalue()
