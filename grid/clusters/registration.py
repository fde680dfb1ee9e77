"""Registers the external metrics with the cluster while they are served, and removes the registration while they are not.

An APIService whose server does not answer fails the discovery of the whole cluster, and without discovery Kubernetes deletes no namespace.
So nobody registers by hand: the leader keeps asking the web processes and the API server, and removes the registration when it stops. A
registration of another program is never touched.
"""

import asyncio
import logging
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from grid.core.errors import GridError, NotAllowed, NotFound
from grid.core.labels import MANAGED_BY, MANAGER
from grid.core.translation import gettext as _
from grid.database.periodic import PeriodicTask
from grid.kube.api import KubeApi
from grid.kube.objects import RawObject
from grid.kube.resources import API_SERVICES, CLUSTER_ROLES
from grid.metrics.external import GROUP, HEALTH_PATH, VERSION, Authority, ServiceReference

logger = logging.getLogger(__name__)

NAME = f"{VERSION}.{GROUP}"
LOOK_SECONDS = 10.0
OFF_SECONDS = 86_400.0  # while no external metrics are served, and so none of ours is registered
PATIENCE = 3  # consecutive checks without an answer
REST_SECONDS = 300.0  # before a registration is tried again that the API server could not use
ANSWER_SECONDS = 5.0
GOODBYE_SECONDS = 2.0  # less than the lease still lasts when its leader stops
_SERVED_BY_ANOTHER = _(
    "another program serves external metrics here and is left alone, so clusters do not grow for waiting tasks: service={found}"
)
# The ClusterRole that allows to register owns the registration, which is so deleted with it.
OWNER = "compute-grid-external-metrics"


def api_service(service: ServiceReference, authority: Authority, *, owner_uid: str = "") -> RawObject:
    owner = {"apiVersion": CLUSTER_ROLES.api_version, "kind": CLUSTER_ROLES.kind, "name": OWNER, "uid": owner_uid}
    owners = {"ownerReferences": [owner]} if owner_uid else {}
    return {
        "apiVersion": API_SERVICES.api_version,
        "kind": API_SERVICES.kind,
        "metadata": {"name": NAME, "labels": {MANAGED_BY: MANAGER}, **owners},
        "spec": {
            "group": GROUP,
            "version": VERSION,
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "caBundle": authority.bundle,
            "service": {"name": service.name, "namespace": service.namespace, "port": service.port},
        },
    }


def is_ours(current: RawObject, wanted: RawObject) -> bool:
    """Return True when the registration has our label, or our Service, which older versions registered without a label."""
    labels = current["metadata"].get("labels") or {}
    service, ours = current["spec"].get("service") or {}, wanted["spec"]["service"]
    return labels.get(MANAGED_BY) == MANAGER or all(service.get(key) == ours[key] for key in ("name", "namespace"))


def differs(current: RawObject, wanted: RawObject) -> bool:
    """Return True when the registration has to be updated; older versions set `insecureSkipTLSVerify`."""
    spec, labels = current["spec"], current["metadata"].get("labels") or {}
    is_other = any(spec.get(key) != value for key, value in wanted["spec"].items())
    return is_other or bool(spec.get("insecureSkipTLSVerify")) or labels.get(MANAGED_BY) != MANAGER


def unavailable(current: RawObject) -> str:
    """Return why the API server does not reach the registered server; "" while it does, or has not tried yet."""
    for condition in (current.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "Available" and condition.get("status") == "False":
            why = condition.get("message") or condition.get("reason")
            return _("The API server does not get through: {condition}", condition=why)
    return ""


@dataclass
class Registration:
    """Keeps the registration while this process leads; unless `is_on`, no external metrics are served and it is only removed. `ask` returns
    why the web processes do not answer, "" when they do."""

    api: KubeApi
    service: ServiceReference
    authority: Authority
    ask: Callable[[], Awaitable[str]]
    is_on: bool
    monotonic: Callable[[], float] = time.monotonic
    _failures: int = field(default=0, init=False)
    _rests_until: float = field(default=float("-inf"), init=False)
    _logged: str = field(default="", init=False)

    def periodic(self) -> PeriodicTask:
        """Return the task. When it ends it removes the registration, which nobody checks any more; the next leader registers again."""
        return PeriodicTask("external metrics", LOOK_SECONDS, self.run_once, within=self._checked)

    @asynccontextmanager
    async def _checked(self) -> AsyncIterator[None]:
        try:
            yield
        finally:
            try:
                async with asyncio.timeout(GOODBYE_SECONDS):
                    current = await self._current() if self.is_on else None
                    if current is not None and is_ours(current, api_service(self.service, self.authority)):
                        await self._remove(current, _("The controller that looked after them ends."))
            except (GridError, TimeoutError) as error:
                logger.debug("the registration of external metrics stays reason=%s", error)

    async def run_once(self) -> float | None:
        """Check once and act on the result; return a long pause when there are no metrics to serve. Raise GridError."""
        try:
            await self._check()
        except NotAllowed as error:
            if self.is_on:
                sentence = _("External metrics cannot be registered: apply deploy/external-metrics.yaml again. {error}")
                raise NotAllowed(sentence.format(error=error)) from error
            logger.debug("without the right to read it, it was never registered")
        return None if self.is_on else OFF_SECONDS

    async def _check(self) -> None:
        current, wanted = await self._current(), api_service(self.service, self.authority)
        if current is not None and not is_ours(current, wanted):
            if self.is_on:
                self._log_once(_SERVED_BY_ANOTHER.format(found=_service_of(current)))
            return
        if not self.is_on:
            if current is not None:
                await self._remove(current, _("GRID_DEMAND_PORT is no longer set."))
            return
        silence = await self.ask()
        problem = silence or (unavailable(current) if current is not None else "")
        self._failures = self._failures + 1 if problem else 0
        if problem and current is None:
            self._log_once(f"external metrics are not registered: {problem}")
        elif problem and current is not None and self._failures >= PATIENCE:
            await self._remove(current, problem)
            if not silence:
                self._rests_until = self.monotonic() + REST_SECONDS
        elif not problem and self.monotonic() >= self._rests_until and (current is None or differs(current, wanted)):
            await self._register(current)

    async def _current(self) -> RawObject | None:
        try:
            return await self.api.get(API_SERVICES, NAME)
        except NotFound:
            return None

    async def _register(self, current: RawObject | None) -> None:
        wanted = api_service(self.service, self.authority, owner_uid=await self._owner_uid())
        if current is None:
            await self.api.create(API_SERVICES, wanted)
        else:
            spec = {**wanted["spec"], "insecureSkipTLSVerify": None}
            version = {"resourceVersion": current["metadata"]["resourceVersion"]}
            await self.api.patch(API_SERVICES, NAME, {"metadata": wanted["metadata"] | version, "spec": spec})
        self._logged = ""
        logger.info("external metrics are registered service=%s", _service_of(wanted))

    async def _owner_uid(self) -> str:
        """Return the uid of the owner; "" in the embedded cluster, which has no roles."""
        try:
            return str((await self.api.get(CLUSTER_ROLES, OWNER))["metadata"]["uid"])
        except (NotFound, NotAllowed):
            return ""

    async def _remove(self, current: RawObject, why: str) -> None:
        try:
            await self.api.delete(API_SERVICES, NAME, uid=current["metadata"]["uid"])
        except NotFound:
            return
        logger.warning("external metrics are no longer registered, so that no namespace waits for them reason=%s", why)

    def _log_once(self, sentence: str) -> None:
        if sentence != self._logged:
            logger.warning("%s", sentence)
        self._logged = sentence


def _service_of(current: RawObject) -> str:
    service: Any = current["spec"].get("service") or {}
    return f"{service.get('namespace')}/{service.get('name')}"


async def ask_servers(service: ServiceReference, authority: Authority, *, address: str = "") -> str:
    """Return why our web processes do not answer behind this Service, "" when they do. `address` is asked in place of the Service's
    own name; the certificate proves that a server is ours."""
    url = f"https://{address or service.host}:{service.port}{HEALTH_PATH}"
    tls = ssl.create_default_context(cadata=authority.pem)
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=ANSWER_SECONDS)) as session,
            session.get(url, ssl=tls, server_hostname=service.host, allow_redirects=False) as answer,
        ):
            if answer.status == 200:
                return ""
            text = (await answer.content.read(500)).decode(errors="replace")
            return _("{url} answers {status}: {answer}", url=url, status=answer.status, answer=text)
    except TimeoutError:
        return _("{url} does not answer in time.", url=url)
    except (aiohttp.ClientError, OSError) as error:
        return _("{url} does not answer: {error}", url=url, error=error)
