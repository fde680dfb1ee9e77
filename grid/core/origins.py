"""The addresses of people's programs: each execution has an origin of its own below one host name (pure).

An origin is what a browser isolates: cookies, storage, service workers, caches, scripts. So what one execution's program serves cannot
reach another's, whoever wrote it. An installation that cannot have a wildcard host name serves all of them on one origin, distinguished by
path; there only their visitors' care keeps them apart.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

_LONGEST_ID = 32
_EXECUTION_ID = 10  # characters
# Paths below every execution's address that the proxy answers itself.
BEGIN_PATH = "__grid__/begin"
OPEN_PATH = "__grid__/open"
WORKER_PATH = "__grid__/worker"

# Below these labels of a country's domain names are registered apart: example.co.uk has nothing to do with another.co.uk.
_PUBLIC = frozenset({"ac", "co", "com", "edu", "gov", "net", "or", "org"})


def is_shared_port(id: str) -> bool:
    """Return whether an origin is named after a shared port of a workspace: its id is longer than any execution's."""
    return len(id) > _EXECUTION_ID and id.startswith("port")


@dataclass(frozen=True, slots=True)
class Door:
    """The execution or shared port that a request names, the prefix of its path ("" at the root), and the rest of the path."""

    execution_id: str
    prefix: str
    rest: str


@dataclass(frozen=True, slots=True)
class Origins:
    """The origins of executions. `base` is scheme, host and perhaps port, such as `https://workspaces.example.com`."""

    base: str
    by_path: bool = False

    def origin(self, execution_id: str) -> str:
        """Return scheme, host and port, as browsers write them in `Origin`."""
        if self.by_path:
            return self.base
        scheme, _, host = self.base.partition("://")
        return f"{scheme}://{execution_id}.{host}"

    def address(self, execution_id: str) -> str:
        """Return the URL of its program's root; it ends with a slash."""
        return f"{self.origin(execution_id)}/w/{execution_id}/" if self.by_path else f"{self.origin(execution_id)}/"

    def door(self, host: str, path: str) -> Door | None:
        """Return the execution that a request's Host header and decoded path name; None when they name none."""
        if self.by_path:
            return _by_path(path) if host.lower() == self._host else None
        execution_id, _, parent = host.lower().partition(".")
        return Door(execution_id, "", path) if parent == self._host and _is_id(execution_id) else None

    def moved(self, host: str, path: str) -> Door | None:
        """Return the execution that an old address by path names, now that each has an origin of its own."""
        return _by_path(path) if not self.by_path and host.lower() == self._host else None

    @property
    def is_secure(self) -> bool:
        return self.base.startswith("https://")

    @property
    def pattern(self) -> str:
        """All origins, as a Content-Security-Policy writes them."""
        scheme, _, host = self.base.partition("://")
        return self.base if self.by_path else f"{scheme}://*.{host}"

    @property
    def _host(self) -> str:
        return self.base.partition("://")[2].partition("/")[0].lower()


def _is_id(text: str) -> bool:
    return len(text) <= _LONGEST_ID and text.isascii() and text.isalnum() and text == text.lower()


def _by_path(path: str) -> Door | None:
    parts = path.split("/", 3)
    if len(parts) < 4 or parts[1] != "w" or not _is_id(parts[2]):
        return None
    return Door(parts[2], f"/w/{parts[2]}", f"/{parts[3]}")


def shared_domain(name: str, other: str) -> str:
    """Return the registrable domain that both names share, as far as names tell, without the list of public suffixes; "" for none."""
    if is_address(name) or is_address(other):
        return ""
    labels, others = name.split(".")[::-1], other.split(".")[::-1]
    shared: list[str] = []
    for label, another in zip(labels, others, strict=False):
        if label != another:
            break
        shared.append(label)
    is_public = len(shared) < 2 or (len(shared) == 2 and len(shared[0]) == 2 and shared[1] in _PUBLIC)
    return "" if is_public else ".".join(reversed(shared))


def is_protected(origin: SplitResult) -> bool:
    """Return True when the origin uses https, or nothing leaves the machine."""
    return origin.scheme == "https" or stays_here(origin.hostname or "")


def stays_here(host: str) -> bool:
    """Return True for a host name that browsers resolve to this machine, and for a loopback address."""
    return host.endswith(".localhost") or is_loopback(host)


def is_loopback(host: str) -> bool:
    """Return True for a loopback address, in brackets or not, and for `localhost`."""
    bare = host.strip("[]")
    return ip_address(bare).is_loopback if is_address(bare) else host == "localhost"


def beyond_loopback(dashboard: str, workspaces: str, allowed_hosts: Sequence[str]) -> str:
    """Return what leads beyond this machine, as a setting with its value; "" when nothing does. A host `*` is any host."""
    origins = {"GRID_DASHBOARD_ORIGIN": dashboard, "GRID_WORKSPACE_ORIGIN": workspaces}
    named = [(setting, origin, urlsplit(origin).hostname or "") for setting, origin in origins.items()]
    named += [("GRID_ALLOWED_HOSTS", host, host) for host in allowed_hosts]
    return next((f"{setting}={value}" for setting, value, host in named if not stays_here(host.lower())), "")


def is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
