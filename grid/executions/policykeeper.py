"""Keeps the NetworkPolicies of executions' namespace: they are created when a controller begins to lead, and repaired every minute. Those
of a cluster are in `clusters.manifests`.

Policies only add to each other, and a pod that any of them selects is closed to all peers that none allows. So the policy that selects
every pod allows what all need, and closes the rest by existing; deploy/network.yaml closes them before the controller has led once.

Addresses that only the running cluster knows are cut out of the allowed destinations: those of its API server, and of our database. While
they are not known, nothing outside is allowed except DNS. The proxy reaches the ports that programs were launched with, and those that
people share of their workspaces, as soon as they are shared and no longer.
"""

import asyncio
import logging
import random
import socket
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import Any, Protocol

from grid.core.backoff import Backoff
from grid.core.egress import Block, Egress, Opening
from grid.core.errors import GridError, NotAllowed, NotFound
from grid.core.labels import APP_COMPONENT, APP_NAME, HEAD, MANAGED_BY, MANAGER, WORKER
from grid.core.translation import gettext as _
from grid.diagnosis.beside import FRONT_PORTS
from grid.executions.manifests import Manifest
from grid.kube.api import KubeApi
from grid.kube.objects import RawObject
from grid.kube.resources import ENDPOINT_SLICES, ENDPOINTS, NETWORK_POLICIES

logger = logging.getLogger(__name__)

# Where our own processes run; deploy/access.yaml makes it. The label is Kubernetes' own, on every namespace.
SYSTEM_NAMESPACE = "compute-grid-system"
_NAMESPACE_NAME = "kubernetes.io/metadata.name"
EXECUTIONS = "executions"
USER_INTERFACES = "user-interfaces"
PERIOD_SECONDS = 60.0
_TRIES = 7  # 32 to 64 seconds with back-off
# The Service of the API server, which writes the endpoints itself.
_API_SERVER, _API_NAMESPACE = "kubernetes", "default"
PORTS_SECONDS = 5.0  # between two looks at what is shared
Resolve = Callable[[str], Awaitable[Iterable[str]]]


def _peer(namespace: str, labels: Mapping[str, str]) -> RawObject:
    named = {"matchLabels": {_NAMESPACE_NAME: namespace}}
    return {"namespaceSelector": named, "podSelector": {"matchLabels": dict(labels)}}


def system_peer(component: str) -> RawObject:
    """Return the peer for the pods of one of our own components."""
    return _peer(SYSTEM_NAMESPACE, {APP_NAME: MANAGER, APP_COMPONENT: component})


_DNS = {
    "to": [_peer("kube-system", {"k8s-app": "kube-dns"})],
    "ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}],
}


def build_policy(
    named: Mapping[str, Any],
    selector: Mapping[str, Any],
    *,
    ingress: Sequence[RawObject] | None = None,
    egress: Sequence[RawObject] | None = None,
) -> Manifest:
    """Return a policy. A direction that is None is left to other policies; an empty one is closed except for what they allow."""
    spec: RawObject = {"podSelector": dict(selector), "policyTypes": []}
    for kind, rules in (("Ingress", ingress), ("Egress", egress)):
        if rules is not None:
            spec["policyTypes"].append(kind)
        if rules:  # the API server leaves an empty list out
            spec[kind.lower()] = list(rules)
    return Manifest.of(NETWORK_POLICIES, named, spec=spec)


def build_for_all(
    namespace: str, openings: Iterable[Opening], ports: Collection[int] | None = None, *, ingress: str = ""
) -> list[Manifest]:
    """Return the policies of all executions: every pod reaches DNS and the allowed destinations, and the proxy reaches their pages, as
    does the controller, which asks whether they are idle: on these ports, or on all. Clusters' policies name their own ports. Pods of the
    namespace `ingress` reach the ports of fronts: those answer only with a token."""

    def named(name: str) -> RawObject:
        return {"name": name, "namespace": namespace, "labels": {MANAGED_BY: MANAGER}}

    outside_clusters = {"matchExpressions": [{"key": APP_COMPONENT, "operator": "NotIn", "values": [HEAD, WORKER]}]}
    pages: RawObject = {"from": [system_peer("proxy"), system_peer("controller")]}
    if ports is not None:
        pages["ports"] = _tcp(ports)
    rules = [pages]
    if ingress:
        peers = [{"namespaceSelector": {"matchLabels": {_NAMESPACE_NAME: ingress}}}]
        rules.append({"from": peers, "ports": _tcp(FRONT_PORTS)})
    return [
        build_policy(named(EXECUTIONS), {}, ingress=[], egress=[_DNS, *map(_outward, openings)]),
        build_policy(named(USER_INTERFACES), outside_clusters, ingress=rules),
    ]


def _tcp(ports: Collection[int]) -> list[RawObject]:
    return [{"protocol": "TCP", "port": port} for port in sorted(ports)]


def _outward(opening: Opening) -> RawObject:
    block: RawObject = {"cidr": str(opening.block)}
    if opening.without:
        block["except"] = list(map(str, opening.without))
    return {"to": [{"ipBlock": block}], **({"ports": _tcp([opening.port])} if opening.port else {})}


class Ports(Protocol):
    """Reads on which ports the proxy has to reach programs: those that are offered, asked often, and those of all that runs."""

    async def offered(self) -> frozenset[int]: ...

    async def running(self) -> frozenset[int]: ...


class Unknown(GridError):
    """The addresses that must stay denied are not known."""


@dataclass(frozen=True, slots=True)
class Network:
    """The settings of the network: `own_hosts` are names or addresses, besides the API server's, that no execution may reach,
    `ingress` the namespace of an ingress that sends people's requests straight to their pods; "" where none does."""

    egress: Egress = field(default_factory=Egress)
    own_hosts: tuple[str, ...] = ()
    ingress: str = ""


async def resolve(host: str) -> Iterable[str]:
    """Return all addresses of a name. Raise OSError."""
    answers = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return {str(address[0]).partition("%")[0] for *_, address in answers}


class PolicyKeeper:
    """Keeps the policies during one term of leadership; `run` until cancelled. Without `ports` all are open to the proxy."""

    def __init__(
        self,
        api: KubeApi,
        namespace: str,
        network: Network,
        *,
        rng: random.Random,
        resolve: Resolve = resolve,
        ports: Ports | None = None,
    ) -> None:
        self._api, self._namespace, self._network = api, namespace, network
        self._rng, self._resolve, self._ports = rng, resolve, ports
        # Former addresses of a host that moves stay denied for this term: its name may resolve to them in turn.
        self._own: dict[str, set[Block]] = {}
        self._told = ""
        self._unknown = 0  # consecutive tries without all addresses

    async def run(self) -> None:
        backoff = Backoff(longest=PERIOD_SECONDS, rng=self._rng)
        while True:
            pause, tried = PERIOD_SECONDS, await self._offered()
            try:
                if await self.keep():
                    backoff.reset()
                else:
                    pause = backoff.next()
            except GridError as error:
                self._tell(f"network policies cannot be kept, trying again reason={error}")
                pause = backoff.next()
            except Exception:
                logger.exception("network policies cannot be kept, trying again")
            await self._rest(pause, tried)

    async def _rest(self, seconds: float, tried: frozenset[int] | None) -> None:
        """Wait so long, or until other ports are offered than were tried; ask a database that does not answer ever more seldom."""
        loop, backoff = asyncio.get_running_loop(), Backoff(first=PORTS_SECONDS, rng=self._rng)
        until, pause = loop.time() + seconds, PORTS_SECONDS
        while (left := until - loop.time()) > 0:
            await asyncio.sleep(min(left, pause))
            offered = await self._offered()
            if offered not in (None, tried):
                return
            pause = backoff.next() if self._ports is not None and offered is None else PORTS_SECONDS

    async def _offered(self) -> frozenset[int] | None:
        if self._ports is None:
            return None
        try:
            return await self._ports.offered()
        except Exception as error:  # a lasting failure is logged by those who need the database for more
            logger.debug("offered ports not read reason=%s", error)
            return None

    async def _open_ports(self) -> frozenset[int] | None:
        offered = await self._offered()
        if self._ports is None or offered is None:
            return None
        try:
            running = await self._ports.running()
        except Exception as error:
            logger.debug("ports of programs not read reason=%s", error)
            return None
        return offered | running

    async def keep(self) -> bool:
        """Apply the present policies and return True when all addresses to deny are known. Raise the API server's errors. While they are
        not, nothing new is allowed. Existing policies stay for some tries, because a name that cannot be resolved for a moment, by a new
        leader, must not cut off running programs; then everything is closed."""
        try:
            openings = self._network.egress.openings(await self._own_addresses())
        except Unknown as error:
            openings = []
            self._unknown += 1
            ways = "no" if self._gives_up else "no further"
            self._tell(f"{ways} way out of the cluster is open to executions reason={error}")
        else:
            self._unknown = 0
            self._told = ""
        ports = await self._open_ports()
        for manifest in build_for_all(self._namespace, openings, ports, ingress=self._network.ingress):
            if ports is not None or self._ports is None or manifest.name != USER_INTERFACES:
                await self._ensure(manifest)
        return not self._unknown

    @property
    def _gives_up(self) -> bool:
        return self._unknown > _TRIES

    async def _own_addresses(self) -> set[Block]:
        own = await self._api_server()
        for host in self._network.own_hosts:
            known = self._own.setdefault(host, set())
            try:
                known |= {ip_network(address) for address in await self._resolve(host)}
            except (OSError, UnicodeError) as error:
                if not known:
                    raise Unknown(f"The addresses of {host}, which must stay shut, cannot be found: {error}") from error
            own |= known
        return own

    async def _api_server(self) -> set[Block]:
        try:
            try:
                slice_ = await self._api.get(ENDPOINT_SLICES, _API_SERVER, namespace=_API_NAMESPACE)
                parts: list[RawObject] = slice_.get("endpoints") or []
                addresses = [address for part in parts for address in part.get("addresses") or ()]
            except NotFound:
                whole = await self._api.get(ENDPOINTS, _API_SERVER, namespace=_API_NAMESPACE)
                subsets: list[RawObject] = whole.get("subsets") or []
                addresses = [address["ip"] for subset in subsets for address in subset.get("addresses") or ()]
        except (NotAllowed, NotFound) as error:
            raise Unknown(f"The API server's addresses, which must stay shut, cannot be read: {error}") from error
        if not addresses:
            raise Unknown(_("The cluster names no address of its API server, which must stay shut."))
        return {ip_network(address) for address in addresses}

    async def _ensure(self, manifest: Manifest) -> None:
        try:
            existing = await self._api.get(manifest.resource, manifest.name, namespace=self._namespace)
        except NotFound:
            await self._api.create(manifest.resource, manifest.body, namespace=self._namespace)
            logger.info("network policy created name=%s", manifest.name)
            return
        is_about_ways_out = manifest.name != USER_INTERFACES
        if existing["spec"] != manifest.body["spec"] and (not is_about_ways_out or not self._unknown or self._gives_up):
            changed = {**existing, "spec": manifest.body["spec"]}
            await self._api.replace(manifest.resource, manifest.name, changed, namespace=self._namespace)
            logger.info("network policy changed name=%s", manifest.name)

    def _tell(self, sentence: str) -> None:
        """Log the sentence unless it was the last one logged."""
        if sentence != self._told:
            logger.warning("%s", sentence)
        self._told = sentence
