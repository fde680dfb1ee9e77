"""Support bundles: what somebody who helps wants to see of an execution, or of the platform, in one file. Each file of a bundle has the
permission and the words of the page that shows the same. What its page forbids to the person who asks is left out, and the list of contents
says who may add it."""

import asyncio
import heapq
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods

from dashboard.audit.views import latest_entries
from dashboard.executions.pages.execution import person, present_head
from dashboard.executions.viewmodels.execution import ExecutionRecord
from dashboard.executions.viewmodels.execution_actions import left_sentence
from dashboard.executions.viewmodels.manifest import redacted_list, redacted_yaml
from dashboard.executions.viewmodels.timeline import lifecycle_text
from dashboard.executions.views.executions import current_viewer, seen
from dashboard.logs.views.logs import final_log
from dashboard.nodes.pages.use_history import use_in
from dashboard.nodes.views.use_history import subject_of
from dashboard.shell.access import Viewer, may_administer, may_observe, may_operate, may_read_audit, user_of
from dashboard.shell.views.fetching import node_description, pod_description
from dashboard.support import records as support_records
from dashboard.support.views.supportzip import MOST_IN_ALL, MOST_OF_A_FILE, SECONDS, SupportZip
from grid.audit.entries import write_entry
from grid.core.labels import KEYS
from grid.core.quantity import format_bytes
from grid.core.translation import gettext as _
from grid.core.workqueue import in_slices
from grid.edge import textwork
from grid.kube.events import age_order
from grid.kube.objects import Event, Pod, is_ready
from grid.kube.redaction import Redactor
from grid.kube.resources import (
    AUTOSCALERS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    INGRESSES,
    LIMIT_RANGES,
    PODS,
    RESOURCE_QUOTAS,
    SERVICES,
    Resource,
)
from grid.kube.store import Freshness
from grid.models import AuditEntry, Execution
from grid.runtime import Runtime, get_runtime

MOST_PODS = MOST_NODES = 30
LOG_LINES = 5000
MOST_EVENTS = 2000
MOST_AUDITED = 500
_RANGE = "6h"
_EVENTS_AT_ONCE = 1000  # some milliseconds of the loop
_OF_PLATFORM = (
    (may_observe, _("How far each watch cache is behind, whether a controller works, and what the autoscaler says.")),
    (may_observe, _("The versions of the cluster and of what it serves, and how each service of the platform is.")),
    (may_observe, _("The samples of all node pools of the last day.")),
    (may_observe, _("The cluster's latest {most_events:,} events.", most_events=MOST_EVENTS)),
    (may_observe, _("Descriptions of {most_nodes} nodes, the ones in trouble first.", most_nodes=MOST_NODES)),
    (may_observe, _("Who waits in the queue and why, and the latest failures.")),
    (may_read_audit, _("The latest entries of the audit log, as its page shows them.")),
    (may_administer, _("Settings and central configuration without secrets, and what Django's checks find.")),
    (may_observe, _("Versions of Compute Grid's Python and packages.")),
)
# By the rule of a page: what somebody whom it keeps out is told.
_LEFT_OUT: Mapping[Callable[[Viewer], bool], str] = {
    may_observe: _("Left out: your role may not see it. Ask an operator or an admin to make the bundle."),
    may_read_audit: _(
        "Left out: only admins and auditors can see the audit log. Ask an admin to make the bundle, or an auditor to export the log."
    ),
    may_administer: _("Left out: only admins can see the configuration. Ask an admin to make the bundle."),
}


class PlatformFile(NamedTuple):
    """A file of the platform's bundle; `may_see` is the rule of the page that shows the same."""

    path: str
    what: str
    read: Callable[[], Awaitable[str]]
    may_see: Callable[[Viewer], bool] = may_observe


@require_http_methods(["GET", "HEAD", "POST"])
async def execution_support(request: HttpRequest, id: str) -> HttpResponse:
    """Say what a bundle of the execution has in it, or send it; for those who may read its log."""
    viewer, record = await seen(request, id)
    who = person(viewer, record)
    if not who.may_read:
        raise PermissionDenied(left_sentence(record))
    if request.method != "POST":
        return await _asked(request, {"record": record, "pods": MOST_PODS, "lines": f"{LOG_LINES:,}"})
    await sync_to_async(_note)(request, id)
    runtime = get_runtime()
    now = runtime.clock()
    secrets = await sync_to_async(support_records.secrets_of)(Execution.objects.filter(pk=id))
    bundle = _begun(_("Support bundle of {object_name}.", object_name=record.object_name), secrets, now)
    head = present_head(runtime, record, who, now)
    ours = (
        ("history.txt", _("what happened"), _text(lifecycle_text(record, to_owner=who.is_owner, present=head))),
        ("history.csv", _("every entry as it is stored"), sync_to_async(support_records.kept_lifecycle)(record)),
        ("record.json", _("what it was launched with"), sync_to_async(support_records.record_text)(id)),
        ("metrics.csv", _("what its program has measured"), sync_to_async(support_records.run_metrics_text)(id)),
        ("workers.csv", _("a cluster's workers over time"), sync_to_async(support_records.cluster_samples_text)(id)),
        ("log.txt", _("the end of its log that was kept"), sync_to_async(final_log)(id)),
        ("versions.txt", _("versions of our packages"), sync_to_async(support_records.versions_text)()),
    )
    for path, what, read in ours:
        await bundle.add(path, what, read, keeps_end=path == "log.txt", is_ours=True)
    await _add_use(bundle, runtime, record)
    await _add_events(bundle, runtime, lambda event: event.involved_object.name.startswith(record.object_name))
    await _add_pods(bundle, runtime, id, now)
    await _add_objects(bundle, runtime, f"{KEYS.execution}={id}")
    return _sent(await bundle.finished(), f"{record.object_name}-support-{now:%Y%m%d-%H%M%S}.zip")


@require_http_methods(["GET", "HEAD", "POST"])
async def platform_support(request: HttpRequest) -> HttpResponse:
    """Say what a bundle of the platform has in it, or send it; for operators and admins."""
    viewer = await current_viewer(request)
    if not may_operate(viewer):
        raise PermissionDenied(_("Only operators and admins can make a support bundle of the platform."))
    if request.method != "POST":
        parts = [what if may_see(viewer) else f"{what} {_LEFT_OUT[may_see]}" for may_see, what in _OF_PLATFORM]
        return await _asked(request, {"parts": parts})
    await sync_to_async(_note)(request)
    runtime = get_runtime()
    now = runtime.clock()
    secrets = await sync_to_async(support_records.secrets_of)(support_records.failed(viewer))
    bundle = _begun(_("Support bundle of the platform."), secrets, now)
    for file in _platform_files(runtime, viewer, now):
        if file.may_see(viewer):
            await bundle.add(file.path, file.what, file.read(), is_ours=True)
        else:
            bundle.miss(file.path, file.what, _LEFT_OUT[file.may_see])
    await _add_events(bundle, runtime, lambda _: True)
    await _add_nodes(bundle, runtime, now)
    return _sent(await bundle.finished(), f"compute-grid-support-{now:%Y%m%d-%H%M%S}.zip")


def _platform_files(runtime: Runtime, viewer: Viewer, now: datetime) -> Sequence[PlatformFile]:
    def stored(read: Callable[..., str], *arguments: object) -> Callable[[], Awaitable[str]]:
        return partial(sync_to_async(read), *arguments)

    latest = stored(latest_entries, MOST_AUDITED)
    configuration = stored(support_records.configuration_text)
    return (
        PlatformFile("health.json", _("caches, controller and autoscaler"), lambda: _text(_health(runtime))),
        PlatformFile("platform.txt", _("versions and services"), stored(support_records.platform_text, now)),
        PlatformFile("pools.csv", _("node pools over the last day"), stored(support_records.pool_samples_text)),
        PlatformFile("queue.csv", _("who waits"), stored(support_records.queue_text, viewer)),
        PlatformFile("failures.csv", _("the latest failures"), stored(support_records.failures_text, viewer)),
        PlatformFile("audit.csv", _("the latest entries of the audit log"), latest, may_read_audit),
        PlatformFile("configuration.txt", _("settings without secrets"), configuration, may_administer),
        PlatformFile("checks.txt", _("what Django's checks find"), stored(support_records.checks_text), may_administer),
        PlatformFile("versions.txt", _("versions of our packages"), stored(support_records.versions_text)),
    )


def _begun(title: str, secrets: Sequence[str], now: datetime) -> SupportZip:
    return SupportZip(title, Redactor(secrets), now=now, deadline=asyncio.get_running_loop().time() + SECONDS)


async def _asked(request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
    bounds = (format_bytes(MOST_OF_A_FILE), format_bytes(MOST_IN_ALL))
    return await sync_to_async(render)(request, "support/support.html", {**context, "bounds": bounds})


async def _text(text: str) -> str:
    return text


async def _add_use(bundle: SupportZip, runtime: Runtime, record: ExecutionRecord) -> None:
    path, what = "use.csv", _("what its pods used, by minute")
    use = await use_in(runtime).read(subject_of(runtime, record), _RANGE)
    if use.known:
        await bundle.add(path, what, asyncio.to_thread(support_records.use_text, use.known), is_ours=True)
    else:
        bundle.miss(path, what, use.problem or _("Prometheus knows nothing of it."))


async def _add_events(bundle: SupportZip, runtime: Runtime, chosen: Callable[[Event], bool]) -> None:
    """Add the latest events of the cache, oldest first."""
    events = [event async for event in in_slices(list(runtime.events.values()), _EVENTS_AT_ONCE) if chosen(event)]
    latest = heapq.nlargest(MOST_EVENTS, events, key=age_order)
    read = asyncio.to_thread(support_records.events_text, latest[::-1])
    await bundle.add("events.csv", _("the cluster's events"), read, keeps_end=True, is_ours=True)


async def _add_pods(bundle: SupportZip, runtime: Runtime, id: str, now: datetime) -> None:
    pods = [pod for pod in runtime.pods.by("execution", id) if pod.metadata.namespace == settings.GRID_NAMESPACE]
    pods.sort(key=lambda pod: pod.metadata.name)
    why = _("Only the first {most_pods} pods are in it.", most_pods=MOST_PODS)
    for pod in pods[MOST_PODS:]:
        bundle.miss(f"pods/{pod.metadata.name}", _("a pod"), why)
    if not pods:
        bundle.miss("pods/", _("its pods"), _("They are gone."))
    for pod in pods[:MOST_PODS]:
        await _add_pod(bundle, runtime, pod, now)


async def _add_pod(bundle: SupportZip, runtime: Runtime, pod: Pod, now: datetime) -> None:
    name, namespace = pod.metadata.name, pod.metadata.namespace
    folder = f"pods/{name}"
    await bundle.add(f"{folder}/pod.yaml", _("the pod"), _yaml(bundle, runtime, PODS, name, namespace))
    described = pod_description(runtime.api, namespace, name, now=now, redactor=bundle.redactor)
    await bundle.add(f"{folder}/describe.txt", _("as kubectl describes it, with its events"), described)
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        path, log = f"{folder}/{status.name}", partial(_log, runtime, pod, status.name)
        await bundle.add(f"{path}.log", _("the container's log"), log(previous=False), keeps_end=True)
        if status.restart_count:
            what = _("its log before it was started again")
            await bundle.add(f"{path}.previous.log", what, log(previous=True), keeps_end=True)


async def _yaml(bundle: SupportZip, runtime: Runtime, resource: Resource, name: str, namespace: str) -> str:
    described = await runtime.api.get(resource, name, namespace=namespace)
    return await textwork.workers.run(redacted_yaml, bundle.redactor, described)


async def _log(runtime: Runtime, pod: Pod, container: str, *, previous: bool) -> str:
    """Return the end of a container's log; its memory is bounded."""
    kept = bytearray()
    logs = partial(runtime.api.logs, pod.metadata.name, namespace=pod.metadata.namespace, container=container)
    async for chunk in logs(tail_lines=LOG_LINES, previous=previous, timestamps=True):
        kept += chunk
        del kept[: -MOST_OF_A_FILE - 1]  # one more, by which it is known as cut
    return kept.decode(errors="replace")


async def _add_objects(bundle: SupportZip, runtime: Runtime, selector: str) -> None:
    async def add(resource: Resource, what: str, selector: str) -> None:
        read = _list(bundle, runtime, resource, selector)
        await bundle.add(f"objects/{resource.plural}.yaml", what.format(objects=resource.plural), read)

    for resource in (CONFIG_MAPS, SERVICES, DEPLOYMENTS, AUTOSCALERS, INGRESSES):
        await add(resource, _("its {objects}"), selector)
    for resource in (RESOURCE_QUOTAS, LIMIT_RANGES):
        await add(resource, _("the namespace's {objects}"), "")


async def _list(bundle: SupportZip, runtime: Runtime, resource: Resource, selector: str) -> str:
    namespace = settings.GRID_NAMESPACE
    page = await runtime.api.list_page(resource, namespace=namespace, label_selector=selector, limit=100)
    return await textwork.workers.run(redacted_list, bundle.redactor, page, size=len(page))


async def _add_nodes(bundle: SupportZip, runtime: Runtime, now: datetime) -> None:
    nodes = sorted(runtime.nodes.values(), key=lambda node: (is_ready(node), node.metadata.name))
    for name in (node.metadata.name for node in nodes[:MOST_NODES]):
        described = node_description(runtime.api, name, now=now)
        await bundle.add(f"nodes/{name}.txt", _("as kubectl describes it"), described)
    if more := nodes[MOST_NODES:]:
        why = _("Only {most_nodes} are in it.", most_nodes=MOST_NODES)
        bundle.miss("nodes/", _("{found:,} more nodes", found=len(more)), why)


def _note(request: HttpRequest, id: str = "") -> None:
    user = user_of(request)
    about = Execution.objects.get(pk=id) if id else user
    changes = {"support bundle": ["", _("downloaded") if id else _("of the platform")]}
    write_entry(user, about, changes, action=AuditEntry.Action.DOWNLOADED)


def _sent(file: bytes, name: str) -> HttpResponse:
    answer = HttpResponse(file, content_type="application/zip")
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    answer["Content-Encoding"] = "identity"  # it is compressed
    return answer


def _health(runtime: Runtime) -> str:
    def of(cache: Freshness) -> dict[str, object]:
        behind = round(cache.behind_seconds, 1)
        return {"synced": cache.synced, "behind_seconds": behind, "error": str(cache.error or "")}

    away = runtime.controller_away()
    autoscaler = runtime.config_maps.get("kube-system/cluster-autoscaler-status")
    health = {
        "caches": {name: of(cache) for name, cache in runtime.caches().items()},
        "controller": "works" if away is None else f"away since {away.since}",
        "metrics": runtime.usage.unavailable,
        "autoscaler": dict(autoscaler.data) if autoscaler else None,
        "nodes": len(runtime.nodes),
        "pods": len(runtime.pods),
    }
    return json.dumps(health, indent=1, default=str)
