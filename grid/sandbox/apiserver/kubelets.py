"""The API server as a client of the kubelets: logs and resource usage come from where the containers run."""

import asyncio
import logging
from collections.abc import Mapping
from time import monotonic

import aiohttp
import msgspec

from grid.sandbox.apiserver.kinds import Object
from grid.sandbox.apiserver.status import Failure, bad_request, server_error
from grid.sandbox.apiserver.store import ObjectStore

log = logging.getLogger(__name__)

_STATS_SECONDS = 3.0
_CONNECT_SECONDS = 5.0
_ADDRESS_ORDER = ("InternalIP", "Hostname", "ExternalIP")


class Kubelets:
    """Connections to the kubelets of all nodes, and their last reported usage."""

    def __init__(self, store: ObjectStore, *, token: str) -> None:
        self._store = store
        self._headers = {"Authorization": f"Bearer {token}"}
        self._session: aiohttp.ClientSession | None = None
        self._stats: dict[str, tuple[float, Object]] = {}
        self._reading = asyncio.Lock()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    def _client(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=False, limit=0), headers=self._headers
            )
        return self._session

    def url_of(self, node_name: str) -> str:
        """Return the URL of a node's kubelet. Raise a 500 `Failure`, as a real cluster does, when the node has no address."""
        record = self._store.get("nodes", node_name)
        if record is None:
            raise Failure(404, "NotFound", f'nodes "{node_name}" not found', {"name": node_name, "kind": "nodes"})
        if not record.is_kept:
            raise bad_request(f"nothing runs on {node_name}, which is only simulated, so there is no log")
        status = record.obj.get("status") or {}
        addresses = {each["type"]: each["address"] for each in status.get("addresses") or ()}
        host = next((addresses[kind] for kind in _ADDRESS_ORDER if kind in addresses), None)
        if host is None:
            raise server_error(f"no preferred addresses found; known addresses: {list(addresses)}")
        endpoint = ((status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}).get("Port", 10250)
        return f"https://{host}:{endpoint}"

    async def open_log(
        self, node_name: str, path: str, query: Mapping[str, str], *, follow: bool
    ) -> aiohttp.ClientResponse:
        """Return the kubelet's answer, which the caller reads and closes. Raise `Failure` when the kubelet refuses."""
        url = self.url_of(node_name) + path
        timeout = aiohttp.ClientTimeout(total=None if follow else 60, sock_connect=_CONNECT_SECONDS)
        try:
            response = await self._client().get(url, params=dict(query), timeout=timeout)
        except (aiohttp.ClientError, TimeoutError) as problem:
            raise server_error(f'Get "{url}": {problem or "timed out"}') from problem
        if response.status < 300:
            return response
        text = (await response.text())[:1000]
        response.release()
        if response.status == 400:
            raise bad_request(text.strip())
        if response.status == 404:
            raise Failure(404, "NotFound", f"the server could not find the requested resource ({text.strip()})", {})
        raise Failure(500, "InternalError", f"Internal error occurred: {text.strip()}")

    async def scrape(self, node_name: str, path: str) -> str:
        """Return what a node's kubelet tells a Prometheus. Raise `Failure` when it does not answer."""
        url = f"{self.url_of(node_name)}/{path}"
        try:
            async with self._client().get(url, timeout=aiohttp.ClientTimeout(total=_CONNECT_SECONDS)) as response:
                if response.status == 200:
                    return await response.text()
                raise Failure(503, "ServiceUnavailable", f"the kubelet of {node_name} answered {response.status}")
        except (aiohttp.ClientError, TimeoutError) as problem:
            message = f'error trying to reach service: Get "{url}": {problem or "timed out"}'
            raise Failure(503, "ServiceUnavailable", message) from problem

    async def stats(self) -> Mapping[str, Object]:
        """Return each ready node's summary, at most a few seconds old; leave out nodes that do not answer."""
        async with self._reading:
            now = monotonic()
            names = [record.key for record in self._store.records("nodes") if record.is_kept]
            stale = [name for name in names if self._stats.get(name, (0.0, {}))[0] < now - _STATS_SECONDS]
            answers = await asyncio.gather(*(self._read_stats(name) for name in stale))
            for name, answer in zip(stale, answers, strict=True):
                self._stats.pop(name, None)
                if answer is not None:
                    self._stats[name] = (now, answer)
            for gone in set(self._stats) - set(names):
                del self._stats[gone]
            return {name: answer for name, (_, answer) in self._stats.items()}

    async def _read_stats(self, node_name: str) -> Object | None:
        try:
            url = self.url_of(node_name)
            async with self._client().get(
                f"{url}/stats/summary", timeout=aiohttp.ClientTimeout(total=_CONNECT_SECONDS)
            ) as response:
                if response.status != 200:
                    log.debug("stats of node=%s answered status=%s", node_name, response.status)
                    return None
                summary: Object = msgspec.json.decode(await response.read())
                return summary
        except (Failure, aiohttp.ClientError, TimeoutError, msgspec.DecodeError) as problem:
            log.debug("stats of node=%s are not available: %s", node_name, problem)
            return None
