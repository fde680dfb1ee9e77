"""Gathers the evidence: the CPU, Jupyter's own API, the last use that nginx in front has marked, and the load of an attached cluster."""

import asyncio
import json
import logging
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import aiohttp
import msgspec

from grid.clusters.frameworks.base import UNREADABLE, FrameworkSilent, body_of
from grid.configuration import IDLE_CPU, value_of
from grid.core.labels import APP_COMPONENT, KEYS, WORKER
from grid.core.translation import gettext as _, ngettext
from grid.executions.context import Context
from grid.executions.front import OPEN_HEADER, TOKEN_HEADER, TOKEN_SECONDS, USE_PATH, token
from grid.kube.objects import Pod, is_ready
from grid.metrics.usage import CpuWindow
from grid.models import Kind
from grid.workspaces.shutdown.records import WatchedRun
from grid.workspaces.shutdown.rules import Look, LookOutcome

logger = logging.getLogger(__name__)
ANSWER_SECONDS = 3.0
AT_ONCE = 32
_LONGEST_ANSWER = 2**20
_FAILED = LookOutcome(Look(is_known=False), _("not known, because looking failed; the controller's log says why"))


@dataclass(frozen=True, slots=True)
class JupyterState:
    """What a Jupyter server says of its kernels and terminals; `active_at` is the latest activity of any of them."""

    busy: int = 0
    terminals: int = 0
    active_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """One look. `cpu_millicores` is the average of the last minutes, None when it was not measured. `jupyter` is None for another program,
    and when it `is_silent`: it was asked and gave no answer. `busy_workers` are those of an attached cluster that have tasks, None while
    their framework does not report. `used_at` is when a person last did something in the browser, as the proxy has noted, and
    `front_used_at` as the nginx in front of the program has; None where there is none, or it gave no answer. `unseen` says why a person's
    use may not have been seen, where requests do not come through our proxy."""

    cpu_millicores: float | None
    jupyter: JupyterState | None = None
    is_silent: bool = False
    busy_workers: int | None = 0
    has_cluster: bool = False
    used_at: datetime | None = None
    front_used_at: datetime | None = None
    unseen: str = ""


def judge(evidence: Evidence, *, cpu_limit: int, now: datetime) -> LookOutcome:
    """Return what the evidence says, with words; `cpu_limit` is in percent of one core."""
    if busy := _busy(evidence, cpu_limit):
        return LookOutcome(Look(is_known=True, is_active=True), busy)
    if unknown := _unknown(evidence):
        return LookOutcome(Look(is_known=False), unknown)
    times = (evidence.used_at, evidence.front_used_at, evidence.jupyter.active_at if evidence.jupyter else None)
    active_at = max((min(at, now) for at in times if at is not None), default=None)
    return LookOutcome(Look(is_known=True, active_at=active_at), _idle(evidence, cpu_limit))


def _busy(evidence: Evidence, cpu_limit: int) -> str:
    """Return what shows that it is in use; "" when nothing does."""
    jupyter, cpu = evidence.jupyter, evidence.cpu_millicores
    if jupyter is not None and jupyter.busy:
        return ngettext("{count:,} kernel is busy", "{count:,} kernels are busy", jupyter.busy)
    if evidence.busy_workers:
        count = evidence.busy_workers
        return ngettext(
            "{count:,} worker of its cluster has tasks", "{count:,} workers of its cluster have tasks", count
        )
    if cpu is not None and cpu >= 10 * cpu_limit:
        return _("average CPU at {cpu:.0f} % of one core", cpu=cpu / 10)
    return ""


def _unknown(evidence: Evidence) -> str:
    """Return why it is not known whether it is idle; "" when it is known."""
    reasons = [
        *([_("its program does not answer")] if evidence.is_silent else ()),
        *([_("its CPU is not measured")] if evidence.cpu_millicores is None else ()),
        *([_("its cluster does not report")] if evidence.busy_workers is None else ()),
        *([evidence.unseen] if evidence.unseen and evidence.jupyter is None else ()),
    ]
    # Jupyter's own word is enough where nothing runs outside of its kernels: a terminal's program shows as CPU only.
    is_enough = evidence.jupyter is not None and not evidence.jupyter.terminals and evidence.busy_workers is not None
    return "" if is_enough or not reasons else _("not known, because {reasons}", reasons=_(" and ").join(reasons))


def _idle(evidence: Evidence, cpu_limit: int) -> str:
    jupyter = evidence.jupyter
    words = [_("no kernel busy"), _("no terminal activity")] if jupyter is not None else [_("nobody used its page")]
    if evidence.has_cluster:
        words.append(_("no task on its cluster"))
    is_measured = evidence.cpu_millicores is not None
    words.append(_("CPU under {limit} %", limit=cpu_limit) if is_measured else _("CPU not measured"))
    return ", ".join(words)


@dataclass(frozen=True, slots=True)
class FrontUse:
    """When a person's request last came through a front, and whether a connection is open there, such as a websocket."""

    used_at: datetime
    is_open: bool


class PodObserver:
    """Looks at executions' pods. `reporting` are the clusters whose framework has answered when it was asked last."""

    def __init__(self, context: Context, *, cpu: CpuWindow, reporting: Collection[str]) -> None:
        self._context, self._cpu, self._reporting = context, cpu, reporting

    async def observe(self, runs: Sequence[WatchedRun], now: datetime) -> Mapping[str, LookOutcome]:
        limit = await self._context.database(value_of, IDLE_CPU)
        places = asyncio.Semaphore(AT_ONCE)
        connector = aiohttp.TCPConnector(limit=AT_ONCE, force_close=True)
        timeout, no_cookies = aiohttp.ClientTimeout(total=ANSWER_SECONDS), aiohttp.DummyCookieJar()
        # For pods only: no cookies, no proxy, no connection that is kept.
        async with aiohttp.ClientSession(timeout=timeout, connector=connector, cookie_jar=no_cookies) as http:

            async def judged(run: WatchedRun) -> LookOutcome:
                try:
                    async with places:
                        return judge(await self._evidence(http, run, now), cpu_limit=limit, now=now)
                except Exception:  # an answer of user code must not keep others from being looked at
                    logger.exception("looking whether it is idle failed execution=%s", run.id)
                    return _FAILED

            outcomes = await asyncio.gather(*map(judged, runs))
        return {run.id: outcome for run, outcome in zip(runs, outcomes, strict=True)}

    async def _evidence(self, http: aiohttp.ClientSession, run: WatchedRun, now: datetime) -> Evidence:
        pods = [pod for pod in self._context.pods.by("execution", run.id) if pod.metadata.deletion_timestamp is None]
        pod = pods[0] if pods else None
        # One after the other: both ask the front, which tells how many requests are open there.
        front = await self._front(http, run, pod, now)
        jupyter, is_silent = await self._jupyter(http, run, pod)
        return Evidence(
            cpu_millicores=self._cpu.mean(pods[0].metadata.key) if pods else None,
            jupyter=jupyter,
            is_silent=is_silent,
            busy_workers=self._busy_workers(run),
            has_cluster=bool(run.clusters),
            used_at=run.used_at,
            front_used_at=front.used_at if front else None,
            unseen=_unseen(front) if run.is_straight else "",
        )

    async def _front(
        self, http: aiohttp.ClientSession, run: WatchedRun, pod: Pod | None, now: datetime
    ) -> FrontUse | None:
        if pod is None or not pod.status.pod_ip or not run.front_port:
            return None
        url, headers = f"http://{_host(pod)}:{run.front_port}{USE_PATH}", self._for_front(run)
        try:
            async with http.head(url, headers=headers, allow_redirects=False) as answer:
                return front_use(answer.headers, now) if answer.status == 200 else None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            logger.debug("front does not tell when it was used execution=%s reason=%s", run.id, error)
            return None

    def _for_front(self, run: WatchedRun) -> dict[str, str]:
        key, expires = self._context.target.front_key(run.id), int(time.time()) + TOKEN_SECONDS
        return {TOKEN_HEADER: token(run.id, key, expires)} if run.front_port else {}

    def _busy_workers(self, run: WatchedRun) -> int | None:
        """Return how many workers of its clusters have tasks; reports have no time, so those of a silent head tell nothing."""
        busy = 0
        for id in run.clusters:
            for pod in self._context.pods.by("execution", id):
                if pod.metadata.labels.get(APP_COMPONENT) != WORKER or not is_ready(pod):
                    continue
                tasks = _tasks(pod) if id in self._reporting else None
                if tasks is None:
                    return None
                busy += bool(tasks)
        return busy

    async def _jupyter(
        self, http: aiohttp.ClientSession, run: WatchedRun, pod: Pod | None
    ) -> tuple[JupyterState | None, bool]:
        """Return what Jupyter says, and whether the program was silent; (None, False) for a program that is not Jupyter. Apps are not
        asked: one with a password of its own, or that refuses unknown paths, would never be idle."""
        if run.kind != Kind.WORKSPACE:
            return None, False
        if pod is None or not pod.status.pod_ip or not run.port:
            return None, True
        root = f"http://{_host(pod)}:{run.front_port or run.port}{run.base_url}api/"
        headers = {"Authorization": f"token {self._context.target.token(run.id)}", **self._for_front(run)}
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                kernels = await _listed(http, f"{root}kernels", headers)
                if kernels is None:
                    return None, False
                terminals = await _listed(http, f"{root}terminals", headers) or []
        except (aiohttp.ClientError, TimeoutError, OSError, FrameworkSilent) as error:
            logger.debug("program does not tell whether it is idle execution=%s reason=%s", run.id, error)
            return None, True
        return jupyter_state(kernels, terminals), False


def jupyter_state(kernels: Sequence[Mapping[str, Any]], terminals: Sequence[Mapping[str, Any]]) -> JupyterState:
    """Return what Jupyter's lists say. User code may answer, so a value may be anything; a kernel that is not plainly idle is busy."""
    times = [_time(program.get("last_activity")) for program in (*kernels, *terminals)]
    return JupyterState(
        busy=sum(kernel.get("execution_state") not in ("idle", "dead") for kernel in kernels),
        terminals=len(terminals),
        active_at=max(filter(None, times), default=None),
    )


def front_use(headers: Mapping[str, str], now: datetime) -> FrontUse | None:
    """Return what a front says in the headers of its answer; as long ago as its own clock says."""
    try:
        ago = parsedate_to_datetime(headers["Date"]) - parsedate_to_datetime(headers["Last-Modified"])
        return FrontUse(now - max(ago, timedelta()), int(headers[OPEN_HEADER]) > 1)  # the look itself is open
    except (KeyError, ValueError):
        return None


def _unseen(front: FrontUse | None) -> str:
    """Return why a person's use may not have been seen: nginx counts no messages of websockets."""
    if front is None:
        return _("the nginx in front does not answer")
    return _("a connection is open in which use is not seen") if front.is_open else ""


def _host(pod: Pod) -> str:
    return f"[{pod.status.pod_ip}]" if ":" in pod.status.pod_ip else pod.status.pod_ip


async def _listed(http: aiohttp.ClientSession, url: str, headers: Mapping[str, str]) -> list[dict[str, Any]] | None:
    """Return the JSON list at the URL; None when the program has none, and so is no Jupyter. Raise FrameworkSilent when it does not say."""
    async with http.get(url, headers=headers, allow_redirects=False) as answer:
        if answer.status >= 500 or answer.status in (401, 403, 429):
            raise FrameworkSilent(_("The program answers {status}.", status=answer.status))
        if answer.status != 200:
            return None
        too_long = _("The program's answer is longer than {size} MiB.")
        body = await body_of(answer, too_long=too_long, longest=_LONGEST_ANSWER)
    try:
        return msgspec.json.decode(body, type=list[dict[str, Any]])
    except UNREADABLE:
        return None


def _tasks(worker: Pod) -> int | None:
    """Return the tasks of a worker as the framework's poller has written them; None before it has."""
    try:
        return int(json.loads(worker.metadata.annotations[KEYS.worker_report])["tasks"])
    except (KeyError, ValueError, TypeError):
        return None


def _time(text: object) -> datetime | None:
    try:
        at = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)
