"""Replays recorded exchanges with a real API server against the embedded one, and compares the answers."""

import asyncio
import json
import re
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, TypeAlias

import aiohttp

Object: TypeAlias = dict[str, Any]
RECORDING = Path(__file__).parents[2] / "recordings" / "api" / "exchanges.jsonl"
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_PATIENCE_SECONDS = 20.0
_QUIET_SECONDS = 0.1  # for which a watch that has sent what was recorded has to send nothing else
PLAIN_BOOKMARK = ["BOOKMARK", False]
# Versions that the recording's author wrote down instead of taking them from an earlier answer.
_WRITTEN_DOWN = {
    "list-exact-expired": ("resourceVersion=699", "resourceVersion={{old-page-1.metadata.resourceVersion}}")
}


@dataclass(frozen=True, slots=True)
class Exchange:
    number: int
    name: str
    request: Object
    response: Object

    @property
    def is_watch(self) -> bool:
        return isinstance(self.response.get("body"), dict) and "stream" in self.response["body"]

    @property
    def needs_authorization(self) -> bool:
        """Refused to somebody with a name; trying it on a server that allows everything would change what follows."""
        return bool(self.response["status"] == 403 and self.request["user"].startswith("ServiceAccount"))

    @property
    def label(self) -> str:
        return f"{self.number} {self.name}"


def exchanges() -> list[Exchange]:
    rows = [json.loads(line) for line in RECORDING.read_text().splitlines()]
    return [Exchange(row["n"], row["name"], row["request"], row["response"]) for row in rows]


@dataclass(slots=True)
class Answer:
    status: int
    body: Any


Direction: TypeAlias = Callable[["Replay"], Coroutine[Any, Any, None]]


@dataclass(slots=True)
class Replay:
    """One session. `directions` are what the recording's author did besides, before the exchange of that name; `clean_up` is what
    the real cluster's controllers did meanwhile.
    """

    session: aiohttp.ClientSession
    url: str
    tokens: Mapping[str, str]
    directions: Mapping[str, Direction]
    during: Mapping[str, Direction]
    clean_up: Callable[[], None]
    patience: float = _PATIENCE_SECONDS
    answers: dict[str, Any] = field(default_factory=dict)

    async def send(self, method: str, path: str, body: Any = None, media: str = "application/json") -> Any:
        """A request that was not recorded; it has to work."""
        headers = {"Authorization": f"Bearer {self.tokens['admin']}", "Content-Type": media}
        async with self.session.request(
            method, self.url + path, data=json.dumps(body) if body is not None else None, headers=headers
        ) as response:
            text = await response.text()
            assert response.status < 300, f"{method} {path}: {text}"
            return json.loads(text)

    async def run(self, exchange: Exchange, *, patient: bool = True) -> str:
        """ "" when the answer agrees with the recorded one, otherwise the difference."""
        if exchange.name in self.directions:
            await self.directions[exchange.name](self)
        aside = asyncio.create_task(self.during[exchange.name](self)) if exchange.name in self.during else None
        deadline = monotonic() + self.patience
        while True:
            answer = await self._ask(exchange)
            problem = difference(exchange, answer)
            final = exchange.request["method"] != "GET" or exchange.is_watch or not patient or monotonic() > deadline
            if not problem or final:
                break
            self.clean_up()
            await asyncio.sleep(0.01)
        if aside is not None:
            await aside
        self.answers[exchange.name] = answer.body
        return problem

    async def _ask(self, exchange: Exchange) -> Answer:
        request = exchange.request
        template = {**request, **request.get("template", {})}
        path = self._filled(template["path"].replace(*_WRITTEN_DOWN.get(exchange.name, ("", ""))))
        if exchange.is_watch:  # which ends when it was read, whatever the machine's speed
            path = re.compile(r"timeoutSeconds=\d+").sub("timeoutSeconds=60", path)
        body = request.get("body")
        if body is not None:
            given = template["body"]
            body = self._filled(given if isinstance(given, str) else json.dumps(given))
        headers = dict(request["headers"])
        token = self._token(request["user"])
        if token:
            headers["Authorization"] = f"Bearer {token}"
        if body is not None and "Content-Type" not in headers:
            headers["Content-Type"] = "application/json"
        skip = () if "Content-Type" in headers else ("Content-Type",)
        async with self.session.request(
            request["method"], self.url + path, data=body, headers=headers, skip_auto_headers=skip
        ) as response:
            if exchange.is_watch and response.status == 200:
                return Answer(response.status, {"stream": await self._events(exchange, response)})
            text = await response.text()
        try:
            return Answer(response.status, json.loads(text))
        except json.JSONDecodeError:
            return Answer(response.status, text)

    async def _events(self, exchange: Exchange, response: aiohttp.ClientResponse) -> list[Object]:
        """Read a watch until it has sent as many events as the recorded one, and a moment longer for one too many."""
        events: list[Object] = []
        expected = len(summary(exchange.response["body"]))
        is_complete = False
        with suppress(TimeoutError):
            async with asyncio.timeout(self.patience) as limit:
                while True:
                    if not is_complete and len(_comparable(exchange, {"stream": events})) >= expected:
                        is_complete = True
                        limit.reschedule(asyncio.get_running_loop().time() + _QUIET_SECONDS)
                    line = await response.content.readline()
                    if not line:
                        break
                    events.append(json.loads(line))
        return events

    def _token(self, user: str) -> str:
        if user == "anonymous":
            return ""
        return "wrong" if user == "bad-token" else self.tokens["admin"]

    def _filled(self, text: str) -> str:
        def value(match: re.Match[str]) -> str:
            answer = self.answers[match[1]]
            for part in match[2].split("."):
                answer = answer[part]
            return str(answer)

        return re.compile(r"\{\{([\w-]+)\.([\w.]+)\}\}").sub(value, text)


def difference(exchange: Exchange, answer: Answer) -> str:
    """What differs in status code, Status body, names in a list, cells of a table or events of a watch."""
    recorded = exchange.response
    if answer.status != recorded["status"]:
        message = answer.body.get("message") if isinstance(answer.body, dict) else answer.body
        return f"status {answer.status} instead of {recorded['status']}: {message}"
    expected, actual = summary(recorded.get("body")), _comparable(exchange, answer.body)
    return "" if expected == actual else f"{actual} instead of {expected}"


def _comparable(exchange: Exchange, body: Any) -> Any:
    """Return the summary of an answer, without bookmarks where the recorded watch has none: they come faster here."""
    actual = summary(body)
    if exchange.is_watch and PLAIN_BOOKMARK not in summary(exchange.response["body"]):
        return [event for event in actual if event != PLAIN_BOOKMARK]
    return actual


def summary(body: Any) -> Any:
    """What has to agree."""
    if not isinstance(body, dict):
        return body or ""
    if body.get("kind") == "Status":
        details = body.get("details") or {}
        causes = sorted(
            {(each.get("field", ""), each["reason"], _same(each["message"])) for each in details.get("causes") or ()}
        )
        named = {key: details[key] for key in ("name", "group", "kind") if key in details}
        return [body["status"], body.get("reason"), _same(body.get("message", "")), body.get("code"), named, causes]
    if "stream" in body:
        events = [_event(each) for each in body["stream"]]
        return [each for number, each in enumerate(events) if each != PLAIN_BOOKMARK or each not in events[:number]]
    if body.get("kind") == "Table":
        return [[each["name"], each["priority"], each["format"]] for each in body["columnDefinitions"]]
    if "items" in body and body.get("kind") != "APIGroupDiscoveryList":
        names = [_plain_name(each["metadata"]["name"]) for each in body["items"]]
        return [body["kind"], body["apiVersion"], names, bool(body["metadata"].get("continue"))]
    if body.get("kind", "").startswith("API") or "gitVersion" in body:
        return body.get("kind")
    return _object(body)


def _object(body: Object) -> Any:
    metadata = body.get("metadata") or {}
    kept = {key: metadata[key] for key in ("namespace", "labels", "finalizers", "generation") if key in metadata}
    spec = json.loads(json.dumps(body.get("spec")))
    if body.get("kind") == "Pod":
        _without_token(spec)
    if body.get("kind") == "Service":
        spec["clusterIP"], spec["clusterIPs"] = "", []
    status = body.get("status") or {}
    named = [body.get("kind"), body.get("apiVersion"), _plain_name(metadata.get("name", ""))]
    return [*named, kept, spec, body.get("data"), status.get("allowed"), status.get("resourceRules")]


def _without_token(spec: Object) -> None:
    """The embedded cluster gives pods no service account token."""
    spec["volumes"] = [each for each in spec.get("volumes") or () if not each["name"].startswith("kube-api-access-")]
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        mounts = [
            each for each in container.get("volumeMounts") or () if not each["name"].startswith("kube-api-access-")
        ]
        container["volumeMounts"] = mounts


def _event(event: Object) -> Any:
    obj = event["object"]
    if event["type"] in ("BOOKMARK",):
        return [event["type"], bool((obj["metadata"].get("annotations") or {}).get("k8s.io/initial-events-end"))]
    if event["type"] == "ERROR":
        return [event["type"], obj["reason"], obj["code"]]
    return [event["type"], obj["kind"], obj.get("metadata", {}).get("name"), obj.get("data")]


def _same(message: str) -> str:
    """Without what differs from run to run, and without the difference of Go structs in refusals of pod updates."""
    return re.sub(r"current: \d+|in record \(\d+\)", "", _UID.sub("UID", message)).partition("\n@@")[0]


def _plain_name(name: str) -> str:
    """Generated names end differently each time, and so do hashes."""
    return re.sub(
        r"-[a-z0-9]{5}$", "-", re.sub(r"\.[0-9a-f]{16}$", "", re.sub(r"-[a-z0-9]{8,10}(?=-|$)", "-hash", name))
    )
