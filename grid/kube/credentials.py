"""Credentials for the cluster and its address: kubeconfig, in-cluster service account, exec plugins.

The official client reads them; this module decides which to read, when to read them again, and turns its failures into
sentences. Nothing is read before the first request, so that a process can start before its cluster exists; nor is that client
imported, which takes half a second, so that a command that asks no cluster does not wait for it.
"""

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from grid.errors import ClusterUnavailable

IN_CLUSTER = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
DEFAULT = Path("~/.kube/config")
_LOAD_TIMEOUT = 60.0  # an exec plugin may ask a cloud's login service


@dataclass(frozen=True, slots=True)
class CredentialSource:
    """The place that credentials come from. An empty `kubeconfig` means in-cluster ones if there are some, else the default file.

    `kubeconfig` may be several paths, separated as the platform separates paths; later ones only add.
    """

    kubeconfig: str = ""
    context: str = ""

    def paths(self) -> list[Path]:
        """Return the files to read; empty for in-cluster credentials."""
        if self.kubeconfig:
            return [Path(path).expanduser() for path in self.kubeconfig.split(os.pathsep) if path]
        return [] if self.is_in_cluster() else [DEFAULT.expanduser()]

    def is_in_cluster(self) -> bool:
        return not self.kubeconfig and bool(os.environ.get("KUBERNETES_SERVICE_HOST")) and IN_CLUSTER.exists()

    def signature(self) -> tuple[tuple[str, int, int], ...]:
        """Return a value that changes when a file is replaced, as when a cluster was set up again."""
        found = []
        for path in self.paths():
            try:
                stat = path.stat()
            except OSError:
                found.append((str(path), 0, 0))
            else:
                found.append((str(path), stat.st_ino, stat.st_mtime_ns))
        return tuple(found)

    async def load(self) -> Any:
        """Return the official client's Configuration, complete. Raise ClusterUnavailable with what to do."""
        from kubernetes.aio import config as kube_config
        from kubernetes.aio.client import Configuration

        configuration = Configuration()
        paths = self.paths()
        if paths and not any(path.is_file() for path in paths):
            raise ClusterUnavailable(
                f"There is no kubeconfig at {', '.join(map(str, paths))}; start the cluster that writes it, or set KUBECONFIG."
            )
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
            raise ClusterUnavailable(f"The cluster's credentials cannot be used: {error}") from error
        except TimeoutError as error:
            raise ClusterUnavailable("The program that fetches the cluster's credentials does not finish.") from error
        except (OSError, ValueError, TypeError, AttributeError, KeyError, yaml.YAMLError) as error:
            # The client raises all of these for a malformed file; their texts may quote it, so only the type is reported.
            where = ", ".join(map(str, paths)) or "the service account"
            raise ClusterUnavailable(f"The credentials of {where} cannot be read ({type(error).__name__}).") from error
        return configuration
