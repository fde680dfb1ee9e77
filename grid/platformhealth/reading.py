"""Reads what the lights need, in one bounded look at a cluster: about a dozen requests, one list of each kind and namespace.

What cannot be read is `Unread` with the reason, and never ends the look.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from typing import Any, TypeVar

import yaml

from grid.core.errors import ClusterUnavailable, GridError, NotAllowed, NotFound, TooManyRequests
from grid.core.labels import KEYS
from grid.core.regexes import Expression, RepeatedExpression
from grid.core.translation import gettext as _
from grid.core.wording import as_sentence
from grid.diagnosis.images import PULL_FAILED
from grid.kube import resources
from grid.kube.api import KubeApi
from grid.kube.events import age_order
from grid.kube.listing import read_all
from grid.kube.objects import ContainerStatus, Event, Pod, VolumeClaim
from grid.kube.pools import AUTOSCALER_NAMESPACE, AUTOSCALER_STATUS
from grid.kube.trouble import sentence_of, trouble_of
from grid.platformhealth import facts, lights
from grid.platformhealth.workloads import decoded, workload

T = TypeVar("T")
KUBE_SYSTEM = "kube-system"
# The kubelet's words, pkg/kubelet/images/image_manager.go and pkg/kubelet/events.
_FAILED_TO_PULL = Expression(r"^Failed to pull image \"([^\"]+)\": (.*)")
_PULLED = Expression(r"^(?:Successfully pulled|Container) image \"([^\"]+)\"")
RECENT = timedelta(minutes=15)
LONGEST_LIST = 500
_FAILED_CHECK = RepeatedExpression(r"\[-\](\S+)")


@dataclass(frozen=True, slots=True)
class Watched:
    """What belongs to the platform. `lookup` and `connect` try the DNS and the proxy from here and return what was wrong, "" for
    nothing; None where trying tells nothing."""

    namespace: str
    own_namespace: str
    ingress_namespace: str = ""
    lookup: Callable[[], Awaitable[str]] | None = None
    connect: Callable[[], Awaitable[str]] | None = None


@dataclass(frozen=True, slots=True)
class PlatformLook:
    lights: tuple[facts.Light, ...]
    workloads: tuple[facts.Workload, ...]
    troubles: tuple[str, ...]


class PlatformReader:
    """Reads a cluster; keeps only when each Lease was seen to change last."""

    def __init__(
        self, api: KubeApi, watched: Watched, *, clock: Callable[[], datetime], monotonic: Callable[[], float]
    ) -> None:
        self._api = api
        self._watched = watched
        self._clock = clock
        self._monotonic = monotonic
        self._seen: dict[str, tuple[str, float]] = {}
        self._spent: list[float] = []
        self._errors: list[str] = []

    async def read(self, events: Collection[Event], pods: Collection[Pod]) -> PlatformLook:
        """Read everything once; `events` and `pods` are those of the executions' namespace."""
        self._spent, self._errors = [], []
        watched, troubles = self._watched, self._recent(events)
        checks = await self._checks()
        namespaces = dict.fromkeys(filter(None, (KUBE_SYSTEM, watched.own_namespace, watched.ingress_namespace)))
        workloads = {namespace: await self._workloads(namespace) for namespace in namespaces}
        listed = await self._try(
            read_all(self._api, resources.VOLUME_CLAIMS, VolumeClaim, namespace=watched.namespace), ""
        )
        claims = listed if isinstance(listed, list) else []
        pending = frozenset(claim.metadata.name for claim in claims if claim.status.phase == "Pending")
        judged = (
            lights.dns(workloads[KUBE_SYSTEM], await watched.lookup() if watched.lookup else None),
            lights.scheduler(await self._lease("kube-scheduler")),
            lights.controller_manager(await self._lease("kube-controller-manager")),
            lights.autoscaler(await self._autoscaler()),
            lights.metrics(await self._metrics()),
            lights.registry(failed_pulls(events, pods, since=self._clock() - RECENT)),
            lights.storage(troubles, pending),
            lights.ingress(bool(watched.ingress_namespace), workloads.get(watched.ingress_namespace, ())),
            lights.proxies(workloads[watched.own_namespace], await watched.connect() if watched.connect else None),
        )
        answers = facts.ServerAnswers(max(self._spent, default=0.0), len(self._spent), tuple(self._errors), checks)
        unread = {name: read.why for name, read in workloads.items() if isinstance(read, facts.Unread)}
        return PlatformLook(
            lights=(lights.api_server(answers), *judged),
            workloads=tuple(
                chain.from_iterable(read for read in workloads.values() if not isinstance(read, facts.Unread))
            ),
            troubles=tuple(
                _("Namespace {namespace} is not shown: {why}", namespace=name, why=why) for name, why in unread.items()
            ),
        )

    def _recent(self, events: Iterable[Event]) -> list[facts.WarningEvent]:
        since = self._clock() - RECENT
        return [
            facts.WarningEvent(event.reason, event.involved_object.name, event.message)
            for event in events
            if event.type == "Warning" and event.last_seen is not None and event.last_seen >= since
        ]

    async def _try(self, asked: Awaitable[T], rule: str) -> T | facts.Unread | None:
        """Return what was asked for; None when there is no such thing. The time counts as an answer of the API server's."""
        began = self._monotonic()
        try:
            return await asked
        except NotFound:
            return None
        except NotAllowed:
            return _forbidden(rule)
        except (ClusterUnavailable, TooManyRequests) as error:
            self._errors.append(sentence_of(error))
            return facts.Unread(as_sentence(trouble_of(error).value))
        except GridError as error:
            return facts.Unread(str(error))
        finally:
            self._spent.append(self._monotonic() - began)

    async def _checks(self) -> tuple[str, ...] | None:
        try:
            text = await self._api.server_text("/readyz", verbose=True)
        except (NotAllowed, NotFound, TooManyRequests):
            return None
        except GridError as error:
            return tuple(_FAILED_CHECK.findall(str(error))) or ("readyz",)
        return tuple(_FAILED_CHECK.findall(text))

    async def _workloads(self, namespace: str) -> Sequence[facts.Workload] | facts.Unread:
        """Return a namespace's Deployments and DaemonSets; () where there are none."""
        pods = await self._try(
            read_all(self._api, resources.PODS, Pod, namespace=namespace), _rule(resources.PODS, "list", namespace)
        )
        if isinstance(pods, facts.Unread):
            return pods
        workloads: list[facts.Workload] = []
        for resource in (resources.DEPLOYMENTS, resources.DAEMON_SETS):
            asked = self._api.list_page(resource, namespace=namespace, limit=LONGEST_LIST)
            body = await self._try(asked, _rule(resource, "list", namespace))
            if isinstance(body, facts.Unread):
                return body
            workloads += [workload(resource.kind, each, pods or ()) for each in (decoded(body) if body else ())]
        return workloads

    async def _lease(self, name: str) -> facts.Heartbeat | facts.Unread | None:
        asked = self._api.get(resources.LEASES, name, namespace=KUBE_SYSTEM)
        lease = await self._try(asked, _rule(resources.LEASES, "get", KUBE_SYSTEM))
        if lease is None or isinstance(lease, facts.Unread):
            return lease
        spec = lease.get("spec", {})
        return self._heartbeat(name, str(spec.get("renewTime")), str(spec.get("holderIdentity") or ""))

    def _heartbeat(self, name: str, value: str, holder: str = "") -> facts.Heartbeat:
        now, known = self._monotonic(), self._seen.get(name)
        if known is None or known[0] != value:
            self._seen[name] = (value, now)
            return facts.Heartbeat(None if known is None else 0.0, holder)
        return facts.Heartbeat(now - known[1], holder)

    async def _autoscaler(self) -> facts.AutoscalerReport | facts.Unread | None:
        asked = self._api.get(resources.CONFIG_MAPS, AUTOSCALER_STATUS, namespace=AUTOSCALER_NAMESPACE)
        status = await self._try(asked, _rule(resources.CONFIG_MAPS, "get", AUTOSCALER_NAMESPACE))
        if status is None or isinstance(status, facts.Unread):
            return status
        text = str(status.get("data", {}).get("status", ""))
        return facts.AutoscalerReport(autoscaler_health(text), self._heartbeat(AUTOSCALER_STATUS, text))

    async def _metrics(self) -> str | facts.Unread | None:
        namespace = self._watched.namespace
        try:
            await self._api.list_page(resources.POD_METRICS, namespace=namespace, limit=1)
        except NotFound:
            return None
        except NotAllowed:
            return _forbidden(_rule(resources.POD_METRICS, "list", namespace))
        except GridError as error:
            if self._errors:  # the API server's own trouble, which stands between
                return facts.Unread(as_sentence(trouble_of(error).value))
            return sentence_of(error)
        return ""


def autoscaler_health(text: str) -> str:
    """Return the health that the cluster autoscaler reports; "" when its report cannot be parsed."""
    try:
        report: Any = yaml.safe_load(text)
        return str(report["clusterWide"]["health"]["status"])
    except (yaml.YAMLError, KeyError, TypeError, ValueError, RecursionError):
        return ""


def _forbidden(rule: str) -> facts.Unread:
    return facts.Unread(_("the controller may not read it. Add the rule: {rule}", rule=rule))


def _rule(resource: resources.Resource, verb: str, namespace: str) -> str:
    right = f"{verb} {resource.plural}.{resource.group}".rstrip(".")
    return _("{right} in {namespace} (deploy/access.yaml)", right=right, namespace=namespace)


async def nothing_wrong(connecting: Awaitable[object], seconds: float = 3.0) -> str:
    """Return "" when it succeeds in time, or what was wrong."""
    try:
        async with asyncio.timeout(seconds):
            await connecting
    except TimeoutError:
        return _("no answer within {seconds:.0f} s", seconds=seconds)
    except OSError as error:
        return error.strerror or str(error)
    return ""


def failed_pulls(events: Collection[Event], pods: Collection[Pod], *, since: datetime) -> list[facts.FailedPull]:
    """Return the last failure of each image of each pod that still waits for it; a pod that is gone or has its image fails no more."""
    waiting = {pod.metadata.name: (pod, frozenset(_waited_for(pod))) for pod in pods}
    states = ((image, status.state) for pod in pods for image, status in _containers(pod))
    had = {image for image, state in states if state.running is not None or state.terminated is not None}
    had |= {match[1] for event in events if event.reason == "Pulled" and (match := _PULLED.search(event.message))}
    failures: dict[tuple[str, str], facts.FailedPull] = {}
    for event in sorted((event for event in events if event.reason == "Failed"), key=age_order):
        match = _FAILED_TO_PULL.search(event.message)
        pod, images = waiting.get(event.involved_object.name, (None, frozenset[str]()))
        is_recent = event.last_seen is not None and event.last_seen >= since
        if match is None or pod is None or match[1] not in images or not is_recent:
            continue
        name, person = pod.metadata.name, pod.metadata.labels.get(KEYS.user, "")
        failures[name, match[1]] = facts.FailedPull(match[1], match[2], name, person, match[1] in had)
    return list(failures.values())


def _containers(pod: Pod) -> Iterator[tuple[str, ContainerStatus]]:
    """Yield the image by its name in the specification, which is the event's too, with the status of its container."""
    images = {each.name: each.image for each in (*pod.spec.init_containers, *pod.spec.containers)}
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        yield images.get(status.name, status.image), status


def _waited_for(pod: Pod) -> Iterator[str]:
    for image, status in _containers(pod):
        if status.state.waiting is not None and status.state.waiting.reason in PULL_FAILED:
            yield image
