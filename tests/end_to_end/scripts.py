"""People without a browser: a session over HTTP that logs in, sends forms and reads pages."""

import http.client
import io
import re
import socket
import time
import urllib.error
import urllib.parse
import urllib.request
from http.cookiejar import CookieJar
from typing import Any

from tests.end_to_end.grid import Place

_TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="(\w+)"')
_TICKET = re.compile(r'name="token" value="([\w-]+)"')
_STATE = re.compile(r'<strong class="status [^"]*" role="status">([^<]+)</strong>')


class _Connection(http.client.HTTPConnection):
    """Finds every name below `localhost` on this machine, as browsers do and the system's resolver does not."""

    def connect(self) -> None:
        host = "127.0.0.1" if self.host.endswith(".localhost") else self.host
        self.sock = socket.create_connection((host, self.port), self.timeout)


class _Handler(urllib.request.HTTPHandler):
    def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_Connection, request)


class Session:
    """One logged-in person."""

    def __init__(self, grid: Place, username: str) -> None:
        self._url = grid.url
        self._jar = CookieJar()
        self._opener = urllib.request.build_opener(_Handler, urllib.request.HTTPCookieProcessor(self._jar))
        self.post("/login/", {"username": username, "password": grid.password(username)}, page="/login/")

    def get(self, path: str) -> str:
        with self._open(self._url + path) as answer:
            return str(answer.read().decode())

    def post(self, path: str, fields: dict[str, str], *, page: str) -> str:
        """Send a form of `page`; gives the address that it led to. An HTTPError carries what a refusal says."""
        form = self.get(page)
        tokens = {"csrfmiddlewaretoken": _found(_TOKEN, form)}
        ticket = _TICKET.search(form)
        if ticket:
            tokens["token"] = ticket[1]
        body = urllib.parse.urlencode({**tokens, **fields}).encode()
        request = urllib.request.Request(self._url + path, body, headers={"Referer": self._url + page})
        with self._open(request) as answer:
            return str(answer.geturl())

    def configure(self, key: str, value: str) -> None:
        """Set a key of the central configuration that has its default, without the review."""
        self.post("/configuration/", {"base": "{}", "do": "save", key: value}, page="/configuration/")

    def _open(self, request: str | urllib.request.Request) -> Any:
        """A refusal's connection is closed at once, for nothing else may do it; its text stays readable."""
        try:
            return self._opener.open(request, timeout=30)
        except urllib.error.HTTPError as refusal:
            with refusal:
                text = io.BytesIO(refusal.read())
            raise urllib.error.HTTPError(refusal.url, refusal.code, refusal.reason, refusal.headers, text) from None

    def launch(self, fields: dict[str, str]) -> str:
        """The id of the new execution."""
        address = self.post("/launch/", fields, page=f"/launch/?kind={fields['kind']}")
        return address.rstrip("/").rsplit("/", 1)[1]

    def open(self, cluster_or_workspace: str) -> str:
        """Press Open; gives the address of its web page, on an origin of its own. An HTTPError carries what a refusal says."""
        page = f"/executions/{cluster_or_workspace}/"
        return self.post(f"{page}open/", {}, page=page)

    def cookie(self, name: str, host: str) -> str:
        """The value that this host has given."""
        return next(cookie.value or "" for cookie in self._jar if cookie.name == name and cookie.domain == host)

    def fetch(self, address: str) -> tuple[int, str]:
        """Status and text at a whole address, also of a refusal."""
        try:
            with self._opener.open(address, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refusal:
            with refusal:
                return refusal.code, refusal.read().decode()

    def cluster_of(self, execution_id: str) -> str:
        """The id of its cluster, from the link on its page."""
        page = self.get(f"/executions/{execution_id}/")
        ids: set[str] = set(re.findall(r'href="/executions/(\w+)/"', page)) - {execution_id}
        assert len(ids) == 1, ids
        return ids.pop()

    def state(self, execution_id: str) -> str:
        return _found(_STATE, self.get(f"/executions/{execution_id}/"))

    def wait_for(self, execution_id: str, *states: str, seconds: float) -> str:
        """Look until it is in one of the states, and fail when it has ended in another."""
        deadline = time.monotonic() + seconds
        while (state := self.state(execution_id)) not in states:
            assert state not in ("Succeeded", "Stopped", "Failed", "Error"), self.get(
                f"/executions/{execution_id}/log/"
            )
            assert time.monotonic() < deadline, f"still {state} after {seconds:.0f} s"
            time.sleep(1)
        return state

    def wait_for_line(self, execution_id: str, line: str, *, seconds: float) -> None:
        """In its log, while it runs or after."""
        deadline = time.monotonic() + seconds
        while line not in (log := self.get(f"/executions/{execution_id}/log/")):
            assert self.state(execution_id) not in ("Failed", "Error", "Stopped"), log
            assert time.monotonic() < deadline, f"waited {seconds:.0f} s in vain for “{line}” in the log:\n{log}"
            time.sleep(1)


def _found(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    assert match, f"{pattern.pattern} is not in the page:\n{text[:3000]}"
    return match[1]


def with_dask(title: str, *, least: int, most: int) -> dict[str, str]:
    """The form of a job with a cluster that keeps its size, on the smallest tiers."""
    return {
        "kind": "job",
        "project": "churn",
        "title": title,
        "environment": "dask-script",
        "tier": "small",
        "with_cluster": "on",
        "framework": "dask",
        "cluster_environment": "dask-cluster",
        "head_tier": "tiny",
        "worker_tier": "tiny",
        "workers_minimum": str(least),
        "workers_maximum": str(most),
        "target_cpu": "",
        "target_memory": "",
        "local_storage": "",
    }


def put_into_project(grid: Place, name: str, text: str) -> None:
    """As if somebody had written the file in a workspace before: into the directory that is the project's volume."""
    (grid.folder_of("project-churn") / name).write_text(text)
