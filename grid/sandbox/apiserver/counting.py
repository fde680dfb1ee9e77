"""Request counts by client, verb and resource: `/metrics` in Prometheus' text format, as `apiserver_request_total`.

`client` is the first word of the User-Agent, which a real API server does not report. A request counts once it is parsed, so
a watch counts when it begins, and there is no status code.
"""

from collections import Counter
from typing import NamedTuple

from aiohttp import web

from grid.sandbox.apiserver.bodies import parse_bool
from grid.sandbox.apiserver.paths import ResourcePath

CONTENT_TYPE = "text/plain; version=0.0.4"
_VERBS = {"GET": "GET", "POST": "POST", "PUT": "PUT", "PATCH": "PATCH", "DELETE": "DELETE"}


class Asked(NamedTuple):
    client: str
    verb: str
    group: str
    resource: str
    subresource: str


class Requests:
    """Counts of requests since the server's start."""

    def __init__(self) -> None:
        self._counts: Counter[Asked] = Counter()

    def note(self, request: web.Request, target: ResourcePath) -> None:
        client = request.headers.get("User-Agent", "").partition("/")[0].partition(" ")[0]
        subresource = target.subresource.name if target.subresource else ""
        self._counts[Asked(client, _verb(request, target), target.kind.group, target.kind.plural, subresource)] += 1

    def text(self) -> str:
        lines = ["# HELP apiserver_request_total Requests since the start.", "# TYPE apiserver_request_total counter"]
        for asked, count in sorted(self._counts.items()):
            labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in asked._asdict().items())
            lines.append(f"apiserver_request_total{{{labels}}} {count}")
        return "\n".join(lines) + "\n"


def _verb(request: web.Request, target: ResourcePath) -> str:
    """Return the request's verb as Kubernetes names it in its metrics."""
    if request.method == "GET" and parse_bool(request.query, "watch"):
        return "WATCH"
    if not target.name:
        return {"GET": "LIST", "DELETE": "DELETECOLLECTION"}.get(request.method, _VERBS.get(request.method, "OTHER"))
    return _VERBS.get(request.method, "OTHER")


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
