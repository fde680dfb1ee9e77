"""What counts as use, what is not known, and what a pod may answer when it is asked whether it is idle."""

import asyncio
import json
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import web
from hypothesis import example, given, strategies as st

from grid.core.labels import APP_COMPONENT, KEYS
from grid.executions.context import Context
from grid.executions.front import USE_PATH
from grid.kube.objects import Pod
from grid.metrics.usage import STALE_SECONDS, WINDOW_SECONDS, CpuWindow
from grid.workspaces.shutdown.observer import ANSWER_SECONDS, Evidence, JupyterState, PodObserver, judge, jupyter_state
from grid.workspaces.shutdown.records import WatchedRun
from grid.workspaces.shutdown.rules import Life, Look, LookOutcome, StopLimits
from tests.controller.world import World
from tests.support.builders import condition, container_status, decode, pod
from tests.support.golden import assert_golden
from tests.support.http_server import Answer, serving
from tests.support.runtime import become
from tests.support.shop import NOW

MINUTE = timedelta(minutes=1)
QUIET = Evidence(cpu_millicores=3.0, jupyter=JupyterState(active_at=NOW - 52 * MINUTE))


def judged(evidence: Evidence, *, cpu_limit: int = 1) -> tuple[Look, str]:
    outcome = judge(evidence, cpu_limit=cpu_limit, now=NOW)
    return outcome.observation, outcome.evidence


# --- Evidence ---


EVIDENCE = {
    "quiet": QUIET,
    "two busy kernels": replace(QUIET, jupyter=JupyterState(busy=2)),
    "a busy kernel, CPU unmeasured": replace(QUIET, jupyter=JupyterState(busy=1), cpu_millicores=None),
    "some CPU": replace(QUIET, cpu_millicores=10.0),
    "silent, much CPU": replace(QUIET, jupyter=None, is_silent=True, cpu_millicores=740.0),
    "a busy worker": replace(QUIET, has_cluster=True, busy_workers=1),
    "busy workers": replace(QUIET, has_cluster=True, busy_workers=3),
    "silent, CPU unmeasured": Evidence(None, None, is_silent=True),
    "silent, little CPU": Evidence(1.0, None, is_silent=True),
    "a terminal, CPU unmeasured": Evidence(None, JupyterState(terminals=1)),
    "a cluster that does not report": Evidence(1.0, JupyterState(), busy_workers=None, has_cluster=True),
    "no kernels": replace(QUIET, jupyter=None),
}


def test_evidence_of_use_is_judged_as_stored() -> None:
    """Use outweighs what is not known, and what is not known is never idle."""
    answers = {name: judged(evidence) for name, evidence in EVIDENCE.items()}
    answers["used, CPU below a higher limit"] = judged(
        replace(QUIET, cpu_millicores=49.0, used_at=NOW - MINUTE), cpu_limit=5
    )
    blocks = [
        f"> {name}\nknown: {use.is_known}, active: {use.is_active}, since: {use.active_at}. {words}"
        for name, (use, words) in answers.items()
    ]
    assert_golden("words-of-idleness", "\n".join(blocks), ending="txt")


@given(
    st.one_of(st.none(), st.floats(0, 4000)),
    st.one_of(st.none(), st.builds(JupyterState, st.integers(0, 3), st.integers(0, 3))),
    st.booleans(),
    st.one_of(st.none(), st.integers(0, 3)),
)
def test_busy_or_unknown_workspace_is_never_idle(
    cpu: float | None, jupyter: JupyterState | None, is_silent: bool, workers: int | None
) -> None:
    use, words = judged(Evidence(cpu, jupyter, is_silent and jupyter is None, workers))
    is_idle = use.is_known and not use.is_active
    if (jupyter and jupyter.busy) or workers or (cpu is not None and cpu >= 10):
        assert use.is_active
    elif workers is None or (cpu is None and (jupyter is None or jupyter.terminals)):
        assert not use.is_known
    if is_idle:
        assert words.startswith(("no kernel busy, ", "nobody used its page, "))


# --- The measurements ---


def test_cpu_average_uses_recent_measurements_only() -> None:
    seconds = [0.0]
    window = CpuWindow(lambda: seconds[0])
    assert window.mean("ns/a") is None
    for value in (100, 20, 0):
        window.add({"ns/a": value})
        seconds[0] += 15
    assert window.mean("ns/a") == 40
    seconds[0] += STALE_SECONDS
    assert window.mean("ns/a") is None
    seconds[0] += WINDOW_SECONDS
    window.add({"ns/a": 8})
    assert window.mean("ns/a") == 8
    seconds[0] += WINDOW_SECONDS + 1
    window.add({"ns/b": 1})
    window.add({"ns/b": 1})
    assert window.mean("ns/a") is None


# --- What Jupyter says ---


def test_kernels_that_are_not_plainly_idle_are_busy() -> None:
    at = "2026-03-04T08:00:00.000001Z"
    states = ("idle", "busy", "starting", "restarting", "dead")
    kernels = [{"execution_state": state, "last_activity": at} for state in states]
    state = jupyter_state(kernels, [{"name": "1", "last_activity": "2026-03-04T08:30:00Z"}])
    assert state == JupyterState(3, 1, NOW - 30 * MINUTE)


_PLAIN = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8))
_JSON = st.one_of(_PLAIN, st.lists(_PLAIN, max_size=2), st.dictionaries(st.text(max_size=4), _PLAIN, max_size=2))
_KERNEL = st.fixed_dictionaries({}, optional={"execution_state": _JSON, "last_activity": _JSON, "connections": _JSON})


@given(st.lists(_KERNEL, max_size=3), st.lists(_KERNEL, max_size=3))
@example([{"execution_state": "idle", "last_activity": "0001-01-01T00:00:00+23:59"}], [])
@example([{"execution_state": "idle", "last_activity": "9999-12-31T23:59:59-23:59"}], [])
def test_whatever_is_answered_can_be_judged(kernels: list[dict[str, Any]], terminals: list[dict[str, Any]]) -> None:
    use = judge(Evidence(1.0, jupyter_state(kernels, terminals)), cpu_limit=1, now=NOW).observation
    assert use.is_known
    assert use.active_at is None or use.active_at <= NOW


# --- Asking a pod ---

LIMITS = StopLimits(60 * MINUTE, None, 30 * MINUTE, 60 * MINUTE, 60 * MINUTE)


def context_of(*pods: Pod) -> Context:
    controller = World().controller()
    become(controller.pods, pods)
    return controller._context


def pod_at(address: str, *, id: str = "abc", component: str = "workspace", **annotations: str) -> Pod:
    labels = {KEYS.execution: id, APP_COMPONENT: component}
    made = pod(f"{component}-{id}", labels=labels, node="n", phase="Running", statuses=[container_status(ready=True)])
    made["metadata"]["annotations"] = annotations
    made["status"] |= {"podIP": address, "conditions": [condition("Ready", "True")]}
    return decode(made, Pod)


def run_at(url: str, **fields: Any) -> WatchedRun:
    port = int(url.rsplit(":", 1)[1]) if url else 8888
    return WatchedRun("abc", "workspace", 1, LIMITS, Life(NOW), port=port, **fields)


async def look_at(run: WatchedRun, *pods: Pod, reporting: Collection[str] = ("clu",)) -> LookOutcome:
    context = context_of(*pods)
    cpu = CpuWindow(lambda: 0.0)
    cpu.add({pod.metadata.key: 2 for pod in pods})

    async def database(work: Callable[..., Any], /, *args: Any) -> int:
        return 1  # the CPU limit

    context.database = database  # type: ignore[assignment]
    return (await PodObserver(context, cpu=cpu, reporting=reporting).observe([run], NOW))[run.id]


def answering(**response: Any) -> Answer:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(**response)

    return answer


async def jupyter(request: web.Request) -> web.StreamResponse:
    assert request.headers["Authorization"] == "token token-of-abc"
    kernels = [{"id": "1", "execution_state": "busy", "last_activity": "2026-03-04T08:00:00Z", "connections": 0}]
    return web.json_response({"/w/abc/api/kernels": kernels, "/w/abc/api/terminals": []}[request.path])


async def test_jupyter_server_is_queried_with_token_at_its_path() -> None:
    async with serving(jupyter) as server:
        outcome = await look_at(run_at(server.url, base_url="/w/abc/"), pod_at("127.0.0.1"))
    assert outcome.evidence == "1 kernel is busy"
    assert [request.path for request in server.seen] == ["/w/abc/api/kernels", "/w/abc/api/terminals"]


@pytest.mark.parametrize(
    "response",
    [
        {"status": 404},
        {"status": 302, "headers": {"Location": "http://169.254.169.254/"}},
        {"text": '{"kernels": 1}', "content_type": "application/json"},
        {"body": b"[" * 100_000},
    ],
)
async def test_another_program_is_judged_by_its_cpu_and_use(response: dict[str, Any]) -> None:
    async with serving(answering(**response)) as server:
        outcome = await look_at(run_at(server.url), pod_at("127.0.0.1"))
    assert outcome == LookOutcome(Look(is_known=True), "nobody used its page, CPU under 1 %")
    assert len(server.seen) == 1, "a redirect is not followed"


async def endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b"[" * 65536)


async def silent(request: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


@pytest.mark.parametrize("answer", [answering(status=401), answering(status=503), endless, silent])
async def test_refusal_or_no_whole_answer_tells_nothing(answer: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ANSWER_SECONDS <= 5
    monkeypatch.setattr("grid.workspaces.shutdown.observer.ANSWER_SECONDS", 0.1 if answer is silent else ANSWER_SECONDS)
    async with serving(answer) as server, asyncio.timeout(5):
        outcome = await look_at(run_at(server.url), pod_at("127.0.0.1"))
    assert outcome.evidence == "not known, because its program does not answer"


async def test_app_is_judged_by_cpu_and_use_without_kernels() -> None:
    async with serving(answering(status=401)) as server:
        app = replace(run_at(server.url), kind="app")
        outcome = await look_at(app, pod_at("127.0.0.1", component="app"))
    assert outcome == LookOutcome(Look(is_known=True), "nobody used its page, CPU under 1 %")
    assert server.seen == []


async def test_unjudgeable_workspace_does_not_delay_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> JupyterState:
        raise RuntimeError("nobody thought of this")

    monkeypatch.setattr("grid.workspaces.shutdown.observer.jupyter_state", fails)
    async with serving(jupyter) as server:
        outcome = await look_at(run_at(server.url, base_url="/w/abc/"), pod_at("127.0.0.1"))
    assert not outcome.observation.is_known
    assert "looking failed" in outcome.evidence


async def test_without_a_pod_or_an_address_nothing_is_known() -> None:
    assert not (await look_at(run_at(""))).observation.is_known
    assert not (await look_at(run_at(""), pod_at(""))).observation.is_known


@pytest.mark.parametrize(
    ("report", "reporting", "evidence"),
    [
        ({"tasks": 4, "bytes": 0}, ("clu",), "1 worker of its cluster has tasks"),
        ({"tasks": 0, "bytes": 9}, ("clu",), "nobody used its page, no task on its cluster, CPU under 1 %"),
        ({"tasks": 0, "bytes": 9}, (), "not known, because its cluster does not report"),
        (None, ("clu",), "not known, because its cluster does not report"),
    ],
)
async def test_work_on_its_cluster_is_use(
    report: dict[str, int] | None, reporting: tuple[str, ...], evidence: str
) -> None:
    annotations = {KEYS.worker_report: json.dumps(report)} if report else {}
    worker = pod_at("127.0.0.9", id="clu", component="worker", **annotations)
    async with serving(answering(status=404)) as server:
        run = run_at(server.url, clusters=("clu",))
        outcome = await look_at(run, pod_at("127.0.0.1"), worker, reporting=reporting)
    assert outcome.evidence == evidence


FRONT_SAYS = {
    "Date": "Wed, 04 Mar 2020 09:00:00 GMT",
    "Last-Modified": "Wed, 04 Mar 2020 08:55:00 GMT",
    "X-Grid-Open": "1",
}


async def test_nginx_reports_last_human_use_by_own_clock() -> None:
    headers = {**FRONT_SAYS}

    async def answer(request: web.Request) -> web.StreamResponse:
        assert request.headers["x-grid-token"]
        return web.Response(headers=headers)

    async with serving(answer) as server:
        app = replace(run_at(server.url), kind="app", front_port=run_at(server.url).port)
        seen = await look_at(app, pod_at("127.0.0.1", component="app"))
        headers.pop("Last-Modified")
        without = await look_at(app, pod_at("127.0.0.1", component="app"))
    assert [request.path for request in server.seen] == [USE_PATH] * 2
    assert seen.observation == Look(is_known=True, active_at=NOW - timedelta(minutes=5))
    assert without.observation == Look(is_known=True), "no evidence"


async def test_jupyter_behind_nginx_is_queried_after_its_use() -> None:
    async def nginx(request: web.Request) -> web.StreamResponse:
        assert request.headers["x-grid-token"]
        return web.Response(headers=FRONT_SAYS) if request.path == USE_PATH else await jupyter(request)

    async with serving(nginx) as server:
        run = replace(run_at(server.url), port=1, front_port=run_at(server.url).port, base_url="/w/abc/")
        seen = await look_at(run, pod_at("127.0.0.1"))
    assert [request.path for request in server.seen] == [USE_PATH, "/w/abc/api/kernels", "/w/abc/api/terminals"]
    assert seen.observation.is_active


async def test_a_front_that_does_not_answer_is_no_evidence() -> None:
    async with serving(answering(status=403, headers=FRONT_SAYS)) as server:
        app = replace(run_at(server.url), kind="app", front_port=run_at(server.url).port)
        refused = await look_at(app, pod_at("127.0.0.1", component="app"))
        gone = await look_at(replace(app, front_port=1), pod_at("127.0.0.1", component="app"))
    assert refused == gone == LookOutcome(Look(is_known=True), "nobody used its page, CPU under 1 %")


@pytest.mark.parametrize(
    ("open", "evidence"),
    [
        ("1", "nobody used its page, CPU under 1 %"),
        ("2", "not known, because a connection is open in which use is not seen"),
        ("", "not known, because the nginx in front does not answer"),
    ],
)
async def test_open_websockets_through_an_ingress_may_be_use(open: str, evidence: str) -> None:
    async with serving(answering(headers={**FRONT_SAYS, "X-Grid-Open": open})) as server:
        app = replace(run_at(server.url), kind="app", front_port=run_at(server.url).port)
        straight = await look_at(replace(app, is_straight=True), pod_at("127.0.0.1", component="app"))
        through_proxy = await look_at(app, pod_at("127.0.0.1", component="app"))
    assert straight.evidence == evidence
    assert through_proxy.observation.is_known, "the proxy sees messages"
    assert judge(Evidence(1.0, JupyterState(), unseen="x"), cpu_limit=1, now=NOW).observation.is_known, (
        "Jupyter sees them too"
    )
