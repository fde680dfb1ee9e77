"""The HorizontalPodAutoscaler controller: reconciles each autoscaler once per period and resizes its target through `scale`.

`scaling.sync` decides; this module fetches and writes: usage from metrics.k8s.io, other numbers from
external.metrics.k8s.io, pods from the mirror, the target by discovery, so anything with a `scale` subresource can be a target. A
failed reconciliation is reported in the autoscaler's conditions and events, and the next one comes a period later, never sooner, so
failing costs no more than working. The memory of recent recommendations and rescales is lost with the process, as with the real one.
"""

import asyncio
import contextlib
import logging
import random
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from grid.core.errors import Conflict, GridError, NotFound
from grid.core.quantity import millicores
from grid.core.regexes import Expression
from grid.sandbox.client import (
    AUTOSCALERS,
    POD_METRICS,
    PODS,
    Api,
    Clock,
    Mirrors,
    Object,
    Resource,
    answer_of,
    key_of,
    labels_of,
    name_of,
    namespace_of,
    reference_to,
    uid_of,
)
from grid.sandbox.controllers.controller import QueueController
from grid.sandbox.controllers.scaling.external import name_of_metric, query_of
from grid.sandbox.controllers.scaling.model import External, Happening, Memory, NamespaceUsage, ScalingSettings
from grid.sandbox.controllers.scaling.reading import read_pod, read_selector, read_usage
from grid.sandbox.controllers.scaling.sync import Scale, Situation, conclude, decide, reads_metrics, without_scale
from grid.sandbox.controllers.selectors import matches_labels

logger = logging.getLogger(__name__)

EXTERNAL_METRICS = "/apis/external.metrics.k8s.io/v1beta1"
_LONGEST_ANSWER_SECONDS = 10.0
_WITHOUT_STATUS = {
    404: "the server could not find the requested resource",
    503: "the server is currently unable to handle the request",
}
_GROUP_VERSION = Expression(r"(?:[a-z0-9][a-z0-9.-]*/)?v[a-z0-9]+")


class HorizontalController(QueueController):
    """The controller that resizes the targets of all HorizontalPodAutoscalers, once a period each."""

    component = "horizontal-pod-autoscaler"
    name = "horizontal"

    def __init__(
        self,
        client: Api,
        *,
        clock: Clock | None = None,
        mirrors: Mirrors | None = None,
        rng: random.Random | None = None,
        settings: ScalingSettings | None = None,
    ) -> None:
        self._settings = settings or ScalingSettings()
        super().__init__(client, clock=clock, mirrors=mirrors, rng=rng)

    def _begin(self) -> None:
        self._autoscalers = self._mirrors.of(AUTOSCALERS)
        self._pods = self._mirrors.of(PODS)
        self._memories: dict[str, Memory] = {}
        self._selectors: dict[str, Mapping[str, Any]] = {}
        self._targets: dict[tuple[str, str], Resource] = {}
        self._autoscalers.subscribe(self._changed)

    def _changed(self, old: Object | None, new: Object | None) -> None:
        if new is None or (old is not None and uid_of(old) != uid_of(new)):
            self._memories.pop(key_of(old or {}), None)
            self._selectors.pop(key_of(old or {}), None)
        if new is not None:
            # After a change of the spec, too, the next reconciliation is a period away, as with the real one.
            self._queue.add_later(key_of(new), self._settings.sync_seconds)

    async def _reconcile(self, key: str) -> float | None:
        autoscaler = self._autoscalers.get(key)
        if autoscaler is None:
            return None
        try:
            await self._sync(key, autoscaler)
        except GridError as error:
            # Mostly the status was written meanwhile by another client: the next reconciliation has the newer one.
            logger.log(
                logging.DEBUG if isinstance(error, Conflict) else logging.WARNING, "horizontal key=%s: %s", key, error
            )
        except Exception:
            logger.exception("horizontal key=%s failed and tries again", key)
        return self._settings.sync_seconds

    async def _sync(self, key: str, autoscaler: Object) -> None:
        namespace, reference = namespace_of(autoscaler), autoscaler["spec"]["scaleTargetRef"]
        try:
            path = (await self._target(reference)).path(namespace, reference["name"], "scale")
            scale = await self._client.get(path)
        except (GridError, _NoSuchTarget) as error:
            problem = answer_of(error).message
            status, event = without_scale(autoscaler, problem, self._clock.now())
            await self._write(autoscaler, status, (event,))
            return
        situation = await self._situation(key, autoscaler, scale)
        decision = decide(situation, self._memories.get(key, Memory()), self._settings, self._clock.now())
        refusal = ""
        if decision.rescale:
            refusal = await self._resize(path, scale, decision.replicas or 0)
        outcome = conclude(situation, decision, self._settings, self._clock.now(), refusal=refusal)
        self._memories[key] = outcome.memory
        await self._write(autoscaler, outcome.status, outcome.events)

    async def _target(self, reference: Mapping[str, Any]) -> Resource:
        """Return the resource of the target's kind, by discovery, and cache it. Raise `_NoSuchTarget`."""
        version, kind = str(reference.get("apiVersion") or "v1"), str(reference["kind"])
        known = self._targets.get((version, kind))
        if known is not None:
            return known
        if not _GROUP_VERSION.fullmatch(version):
            raise _NoSuchTarget(f"unexpected GroupVersion string: {version}")
        group, _, name = version.rpartition("/")
        prefix = f"/apis/{version}" if group else f"/api/{version}"
        try:
            served = (await self._client.get(prefix)).get("resources") or ()
        except NotFound:
            served = ()
        for item in served:
            if item.get("kind") == kind and "/" not in item["name"]:
                resource = self._targets[version, kind] = Resource(group, name, item["name"], kind)
                return resource
        raise _NoSuchTarget(f'no matches for kind "{kind}" in group "{group}"')

    async def _situation(self, key: str, autoscaler: Object, scale_object: Object) -> Situation:
        namespace = namespace_of(autoscaler)
        text = str((scale_object.get("status") or {}).get("selector") or "")
        present = int((scale_object.get("status") or {}).get("replicas") or 0)
        scale = Scale(int((scale_object.get("spec") or {}).get("replicas") or 0), text, present)
        if not reads_metrics(autoscaler["spec"], scale) or not text:
            return Situation(autoscaler, scale)
        selector = self._selectors[key] = read_selector(text)
        pods = [
            pod
            for pod in self._pods.values()
            if namespace_of(pod) == namespace and matches_labels(selector, labels_of(pod))
        ]
        rivals = self._rivals(namespace, pods)
        usage, external = NamespaceUsage(namespace), {}
        if len(rivals) < 2:
            metrics = autoscaler["spec"].get("metrics") or ()
            if any(metric["type"] in ("Resource", "ContainerResource") for metric in metrics):
                usage = await self._usage(namespace, text)
            external = {
                (name_of_metric(metric), query_of(metric)): await self._external(namespace, metric)
                for metric in metrics
                if metric["type"] == "External"
            }
        return Situation(autoscaler, scale, [read_pod(pod) for pod in pods], usage, rivals, external)

    def _rivals(self, namespace: str, pods: Sequence[Object]) -> tuple[str, ...]:
        """Return all autoscalers of the namespace that select one of these pods, as far as their selectors are known yet."""
        return tuple(
            sorted(
                key
                for key, selector in self._selectors.items()
                if key.rpartition("/")[0] == namespace and any(matches_labels(selector, labels_of(pod)) for pod in pods)
            )
        )

    async def _usage(self, namespace: str, selector: str) -> NamespaceUsage:
        try:
            metrics = await self._client.list(POD_METRICS.path(namespace), label_selector=selector)
        except GridError as error:
            problem = f"unable to fetch metrics from resource metrics API: {answer_of(error).message}"
            return NamespaceUsage(namespace, problem=problem)
        return read_usage(namespace, metrics)

    async def _external(self, namespace: str, metric: Mapping[str, Any]) -> External:
        path = f"{EXTERNAL_METRICS}/namespaces/{namespace}/{quote(name_of_metric(metric), safe='')}"
        try:
            async with asyncio.timeout(_LONGEST_ANSWER_SECONDS):
                items = await self._client.list(path, label_selector=query_of(metric))
            return External([millicores(item["value"]) for item in items])
        except GridError as error:
            answer = answer_of(error)
            problem = answer.message
            if not answer.reason and answer.code in _WITHOUT_STATUS:
                # The API is not served or unavailable: the message is that of the real one's client.
                problem = f"{_WITHOUT_STATUS[answer.code]} (get {name_of_metric(metric)}.external.metrics.k8s.io)"
        except TimeoutError:
            # A server that hangs must not keep the other autoscalers waiting.
            problem = f"no answer within {_LONGEST_ANSWER_SECONDS:g} seconds"
        except (KeyError, ValueError):
            problem = "it answered something that is no list of values"
        return External(problem=f"unable to fetch metrics from external metrics API: {problem}")

    async def _resize(self, path: str, scale: Object, replicas: int) -> str:
        """Return why the server refused, or ""."""
        try:
            await self._client.update(path, {**scale, "spec": {**(scale.get("spec") or {}), "replicas": replicas}})
        except GridError as error:
            return answer_of(error).message
        return ""

    async def _write(self, autoscaler: Object, status: Mapping[str, Any], events: tuple[Happening, ...]) -> None:
        about = reference_to(autoscaler, kind=AUTOSCALERS.kind, api_version=AUTOSCALERS.api_version)
        for event in events:
            await self._events.record(about, event.reason, event.message, type=event.type)
        if status == autoscaler.get("status"):
            return
        body = {**autoscaler, "apiVersion": AUTOSCALERS.api_version, "kind": AUTOSCALERS.kind, "status": dict(status)}
        with contextlib.suppress(NotFound):
            await self._client.update(AUTOSCALERS.path(namespace_of(autoscaler), name_of(autoscaler), "status"), body)


class _NoSuchTarget(Exception):
    """The autoscaler names a kind that this server does not know; the message is for its user."""
