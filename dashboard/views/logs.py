"""Fetches an execution's log from its pod while there is one; a cluster's is the ends of all its pods' logs, merged by time."""

import asyncio
from dataclasses import replace
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.http import HttpRequest

from dashboard.records import final_log
from dashboard.viewmodels.execution import ExecutionRecord
from dashboard.viewmodels.log import (
    ALL,
    MAIN_CONTAINER,
    MERGED_PODS,
    LogSource,
    all_source,
    log_source,
    member_name,
    merged,
    started_pods,
    why_no_log,
)
from dashboard.views.fetching import LOG_LINES, Fetched, fetched, log_tail
from grid.kube.objects import Pod
from grid.runtime import Runtime
from grid.wording import plural

_AT_ONCE = 6
_LEAST_LINES = 40  # per pod, whatever the number of pods
_REFRESH_SECONDS = 3
_REFRESH_ALL_SECONDS = 10  # slower, because each pod takes a request


async def log_context(request: HttpRequest, runtime: Runtime, record: ExecutionRecord) -> dict[str, Any]:
    """Return the log's template context: the log of the pods while there are some, else the stored end of the log."""
    found = runtime.pods.by("execution", record.id)
    pods = [pod for pod in found if pod.metadata.namespace == settings.GRID_NAMESPACE]
    source = _source(request, record, pods)
    context: dict[str, Any] = {
        "record": record,
        "source": source,
        "lines": LOG_LINES,
        "seconds": _REFRESH_ALL_SECONDS if source and source.pod == ALL else _REFRESH_SECONDS,
    }
    if source is None:
        kept = await sync_to_async(final_log)(record.id)
        return context | {"fetched": Fetched(text=kept, problem="" if kept else why_no_log(record))}
    if not source.has_started:
        return context | {"fetched": Fetched(problem=why_no_log(record))}
    if source.pod == ALL:
        text, note = await _all_together(runtime, started_pods(pods))
        return context | {"fetched": text, "note": note}
    chunks = runtime.api.logs(source.pod, namespace=source.namespace, container=source.container, tail_lines=LOG_LINES)
    text = await fetched(log_tail(chunks))
    if text.problem and record.is_final and (kept := await sync_to_async(final_log)(record.id)):
        text = Fetched(text=kept)  # the pod was removed, and the watch has not said so yet
    return context | {"fetched": text}


def _source(request: HttpRequest, record: ExecutionRecord, pods: list[Pod]) -> LogSource | None:
    pod, container = request.GET.get("pod", ""), request.GET.get("container", "")
    if record.cluster is None:
        return log_source(pods, pod=pod, container=container, main=record.object_name)
    together = all_source(pods)
    chosen = log_source([one for one in pods if one.metadata.name == pod], pod=pod, container=container, main=pod)
    return replace(chosen, pods=together.pods) if chosen and together else together


async def _all_together(runtime: Runtime, started: list[Pod]) -> tuple[Fetched, str]:
    """Return the merged logs, and a note about what is missing in them."""
    pods = started[:MERGED_PODS]
    lines = max(_LEAST_LINES, LOG_LINES // len(pods))
    turn = asyncio.Semaphore(_AT_ONCE)

    async def end_of(pod: Pod) -> Fetched:
        async with turn:
            chunks = runtime.api.logs(
                pod.metadata.name,
                namespace=pod.metadata.namespace,
                container=MAIN_CONTAINER,
                tail_lines=lines,
                timestamps=True,
            )
            return await fetched(log_tail(chunks))

    found = await asyncio.gather(*map(end_of, pods))
    problems = [one.problem for one in found if one.problem]
    if len(problems) == len(pods):
        return Fetched(problem=problems[0]), ""
    texts = {member_name(pod): one.text for pod, one in zip(pods, found, strict=True) if not one.problem}
    notes = [f"The logs of {plural(len(problems), 'pod')} could not be fetched: {problems[0]}"] if problems else []
    if len(started) > len(pods):
        notes.append(
            f"Only {len(pods)} of {len(started)} pods are shown together, the newest ones; choose a pod to see its log."
        )
    return Fetched(text=merged(texts, lines=LOG_LINES)), " ".join(notes)
