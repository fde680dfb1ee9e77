"""Credentials for the cluster and its address: kubeconfig, in-cluster service account, exec plugins.

The official client reads them; this module decides which and when, and turns failures into sentences. Nothing is read before the first
request, so that a process can start before its cluster exists; nor is that client imported, which takes a fifth of a second.
"""

import asyncio
import os
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import yaml

from grid.core.errors import ClusterUnavailable
from grid.core.translation import gettext as _
from grid.kube.errors import translated

IN_CLUSTER = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
DEFAULT = Path("~/.kube/config")
_LOAD_TIMEOUT = 60.0  # an exec plugin may ask a cloud's login service


@dataclass(frozen=True, slots=True)
class Access:
    """An API server's address and what lets us in; for a server that stays as it is, also the `Credentials`. `authorization` gives the
    header's value, or nothing."""

    server: str
    authorization: Callable[[], Awaitable[str | None]]
    tls: ssl.SSLContext | None = None
    proxy: str | None = None
    tls_server_name: str | None = None

    def signature(self) -> object:
        return None

    async def load(self) -> "Access":
        return self


class Credentials(Protocol):
    """The place that credentials come from."""

    def signature(self) -> object:
        """Return a value that changes when the credentials were replaced, as when a cluster was set up again."""
        ...

    async def load(self) -> Access:
        """Read the credentials. Raise ClusterUnavailable with what to do."""
        ...


@dataclass(frozen=True, slots=True)
class CredentialSource:
    """What the official client reads. An empty `kubeconfig` means in-cluster ones if there are some, else the default file; it may be
    several paths, separated as the platform separates paths; later ones only add."""

    kubeconfig: str = ""
    context: str = ""

    def paths(self) -> list[Path]:
        """Return the files to read; empty for in-cluster credentials."""
        if self.kubeconfig:
            return [Path(path).expanduser() for path in self.kubeconfig.split(os.pathsep) if path]
        is_in_cluster = os.environ.get("KUBERNETES_SERVICE_HOST") and IN_CLUSTER.exists()
        return [] if is_in_cluster else [DEFAULT.expanduser()]

    def signature(self) -> tuple[tuple[str, int, int], ...]:
        files = []
        for path in self.paths():
            try:
                stat = path.stat()
            except OSError:
                files.append((str(path), 0, 0))
            else:
                files.append((str(path), stat.st_ino, stat.st_mtime_ns))
        return tuple(files)

    async def load(self) -> Access:
        from kubernetes.aio.client.rest import RESTClientObject

        configuration = await self._configuration()
        server = configuration.host.rstrip("/")
        with translated(host_of(server)):
            rest = RESTClientObject(configuration)

        async def authorization() -> str | None:
            token: str | None = await configuration.get_api_key_with_prefix("BearerToken", "authorization")
            return token

        proxy = rest.proxy or _proxy_of(server)
        return Access(server, authorization, rest.ssl_context, proxy, configuration.tls_server_name)

    async def _configuration(self) -> Any:
        from kubernetes.aio import config as kube_config
        from kubernetes.aio.client import Configuration

        configuration = Configuration()
        paths = self.paths()
        if paths and not any(path.is_file() for path in paths):
            words = _("There is no kubeconfig at {paths}; start the cluster that writes it, or set KUBECONFIG.")
            raise ClusterUnavailable(words.format(paths=", ".join(map(str, paths))))
        try:
            async with asyncio.timeout(_LOAD_TIMEOUT):
                if paths:
                    await kube_config.load_kube_config(
                        config_file=os.pathsep.join(map(str, paths)),
                        context=self.context or None,
                        client_configuration=configuration,
                        persist_config=False,
                    )
                else:
                    kube_config.load_incluster_config(client_configuration=configuration)
        except kube_config.ConfigException as error:
            raise ClusterUnavailable(_("The cluster's credentials cannot be used: {error}", error=error)) from error
        except TimeoutError as error:
            words = _("The program that fetches the cluster's credentials does not finish.")
            raise ClusterUnavailable(words) from error
        except (OSError, ValueError, TypeError, AttributeError, KeyError, yaml.YAMLError) as error:
            # The client raises all of these for a malformed file; their texts may quote it, so none is reported.
            where = ", ".join(map(str, paths)) or _("the service account")
            words = _("The credentials of {where} are not there, cannot be read or are malformed.", where=where)
            raise ClusterUnavailable(words) from error
        return configuration


def host_of(url: str) -> str:
    """Return host and port for messages. Raise ClusterUnavailable for what is no address of an API server."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ClusterUnavailable(_("The API server's address in the kubeconfig is not a valid URL."))
    return f"{parts.hostname}:{port}" if port else parts.hostname


def _proxy_of(server: str) -> str | None:
    """Return the proxy that the environment names for the server; the HTTP library would look for it at each request, in a thread."""
    parts = urlsplit(server)
    return None if proxy_bypass(parts.hostname or "") else getproxies().get(parts.scheme)
