"""What a support bundle has from the database and the settings; synchronous."""

import csv
import functools
import importlib.metadata
import io
import json
import platform
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import django
from django.conf import settings
from django.core import checks
from django.db import connection
from django.db.models import QuerySet

from dashboard.metric_records import read_metrics
from dashboard.platform_records import read_health
from dashboard.ran_with_records import ran_with
from dashboard.viewmodels.format import spreadsheet_text
from dashboard.viewmodels.ran_with import record_json
from dashboard.viewmodels.use_history import Known
from grid.centralconfig import overrides
from grid.kube.objects import Event
from grid.launch import storedsecrets
from grid.launch.spec import parse_spec
from grid.launch.token import access_token, front_key
from grid.models import AuditEntry, ClusterSample, Execution, LifecycleEntry, PoolSample, State
from grid.models.dataplane import LOCAL
from grid.translation import gettext as _

_AUDITED, _QUEUED, _FAILED, _SAMPLES = 500, 500, 200, 10_000  # rows at most
# Settings that say what they are set to; of all others only whether they are set.
_SHOWN = (
    *("DEBUG", "DEMO", "DASHBOARD_ORIGIN", "WORKSPACE_PATHS", "GRID_NAMESPACE", "NODE_POOL_LABEL", "CURRENCY"),
    *("FRONT_IMAGE", "FRONT_CORES", "FRONT_MEMORY", "EXECUTOR_IMAGE", "EXECUTOR_CORES", "EXECUTOR_MEMORY"),
    *("INGRESS_CLASS", "DEMAND_PORT", "TIME_ZONE"),
)
_ONLY_SET = (
    *("SECRET_KEY", "ENCRYPTION_KEYS", "EMAIL_HOST", "EMAIL_HOST_PASSWORD", "PROMETHEUS_URL", "REPOSITORIES"),
    "ALERTMANAGER_URL",
    *("LOG_RECEIVER", "LOG_RECEIVER_URL", "LOG_RECEIVER_AUTHORIZATION"),
)


def secrets_of(execution_id: str) -> list[str]:
    """Return the values that must not be seen in a bundle of the execution: those stored for it, and what opens its pages."""
    found = [*own_secrets(), access_token(execution_id), front_key(execution_id)]
    execution = Execution.objects.filter(pk=execution_id).first()
    try:
        asked = parse_spec(execution).secrets if execution else ()
    except ValueError:
        asked = ()
    return found + storedsecrets.readable_values(one.id for one in asked)


def own_secrets() -> list[str]:
    """Return the secrets of the installation itself."""
    password = str(settings.DATABASES["default"].get("PASSWORD") or "")
    return [
        settings.SECRET_KEY,
        *settings.ENCRYPTION_KEYS,
        settings.EMAIL_HOST_PASSWORD,
        settings.ALERTS_TOKEN,
        settings.LOG_RECEIVER_AUTHORIZATION,
        settings.LOG_RECEIVER_AUTHORIZATION.rpartition(" ")[2],
        password,
    ]


def record_text(execution_id: str) -> str:
    """Return what an execution ran with as JSON; of what is no job its launch."""
    ran = ran_with(execution_id)
    return json.dumps(record_json(ran), indent=1, default=str) if ran else _("It can no longer be read.") + "\n"


def versions_text() -> str:
    """Return the versions of this process and of its packages."""
    database = f"{connection.vendor} {'.'.join(map(str, connection.get_database_version()))}"
    own = (f"Python {platform.python_version()}", f"Django {django.get_version()}", platform.platform(), database)
    return "\n".join((*own, "", *_packages(), ""))


@functools.cache
def _packages() -> list[str]:
    """Each has a file to be read, and none changes under a process."""
    return sorted({f"{one.name} {one.version}" for one in importlib.metadata.distributions()}, key=str.lower)


def configuration_text() -> str:
    """Return the settings and the central configuration, without secrets."""
    lines = [f"{name} = {getattr(settings, name)!r}" for name in _SHOWN if hasattr(settings, name)]
    lines += [
        _("{name} is set", name=name) if getattr(settings, name, "") else _("{name} is not set", name=name)
        for name in _ONLY_SET
    ]
    stored = overrides()
    lines += ["", _("Central configuration, where it is not the default:")]
    lines += [f"{key} = {value}" for key, value in sorted(stored.items())] or [_("nothing")]
    return "\n".join((*lines, ""))


def checks_text() -> str:
    """Return what Django's system checks find."""
    found = [f"{one.id or ''} {one.msg}" for one in checks.run_checks()]
    return "\n".join((*(found or ["nothing to complain of"]), ""))


def queue_text() -> str:
    rows = Execution.objects.filter(settled_at=None, state=State.QUEUED).order_by("requested_at")[:_QUEUED]
    return _table(
        ("execution", "kind", "owner", "project", "tier", "requested_at", "reason", "message"),
        rows.values_list("pk", "kind", "owner__username", "project_id", "tier_id", "requested_at", "reason", "message"),
    )


def failures_text() -> str:
    """Return the latest executions that failed, by their program or by the platform."""
    rows = Execution.objects.filter(state__in=(State.FAILED, State.ERROR)).order_by("-ended_at", "-pk")[:_FAILED]
    return _table(
        ("execution", "kind", "tier", "state", "ended_at", "reason", "message"),
        rows.values_list("pk", "kind", "tier_id", "state", "ended_at", "reason", "message"),
    )


def audit_text() -> str:
    rows = AuditEntry.objects.order_by("-pk")[:_AUDITED]
    return _table(
        ("at", "who", "action", "kind", "object", "changes"),
        rows.values_list("at", "actor_name", "action", "object_type", "object_name", "changes"),
    )


def kept_lifecycle(execution_id: str) -> str:
    """Return every entry of the history, with Kubernetes' own words."""
    rows = LifecycleEntry.objects.filter(execution=execution_id).order_by("at", "pk")
    return _table(
        ("at", "to_state", "reason", "actor", "message"),
        rows.values_list("at", "to_state", "reason", "actor", "message"),
    )


def events_text(events: Iterable[Event]) -> str:
    rows = ((one.last_seen, one.times, one.type, one.reason, _about(one), one.reporter, one.message) for one in events)
    return _table(("last_seen", "times", "type", "reason", "object", "reporter", "message"), rows)


def use_text(known: Known) -> str:
    """Return what Prometheus knows by minute: cores, bytes, bytes a second and percent."""
    columns = sorted({name for values in known.values() for name in values})
    rows = (
        (datetime.fromtimestamp(60 * minute, UTC), *(values.get(name, "") for name in columns))
        for minute, values in sorted(known.items())
    )
    return _table(("minute", *columns), rows)


def run_metrics_text(execution_id: str) -> str:
    """Return what its program has measured itself."""
    found = read_metrics(execution_id).metrics
    return _table(("metric", "step", "value"), ((one.name, *point) for one in found for point in one.points))


def cluster_samples_text(execution_id: str) -> str:
    """Return how many workers a cluster had and wanted, and why."""
    return _stored(ClusterSample.objects.filter(execution=execution_id).order_by("-at"))


def pool_samples_text() -> str:
    """Return the samples of all node pools, which are kept for a day."""
    return _stored(PoolSample.objects.order_by("-minute", "pool"))


def platform_text(now: datetime) -> str:
    """Return the versions of the cluster, of what it serves and of the frameworks, and how the platform's services are."""
    stored = read_health(LOCAL, now)
    lines = [f"{one.subject}: {one.sentence}" for one in stored.versions]
    lines += [f"{one.name} ({one.severity}): {one.sentence}" for one in stored.lights]
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
    writer = csv.writer(out)
    writer.writerow(head)
    for row in rows:
        writer.writerow(map(_cell, row))
    return out.getvalue()
