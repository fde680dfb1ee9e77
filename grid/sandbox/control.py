"""Requests to the embedded cluster beside Kubernetes' API: the size of its population, and simulated failures.

    GET   /sandbox/population            the present state
    PATCH /sandbox/population            {"pods": 500, "churn": 20}, either of them
    POST  /sandbox/failures/NAME         {"pool": "cpu", "count": 10, "seconds": 15}, as the failure needs
    GET   /sandbox/pools                 each pool's minimum and maximum
    PATCH /sandbox/pools/NAME            {"minimum": 1, "maximum": 5, "was": [0, 5]}: 409 when the limits are not those of "was"
    GET   /sandbox/kube-state-metrics    what kube-state-metrics would answer a Prometheus
    GET   /sandbox/scrape-targets        the kubelets, as a Prometheus finds its targets over HTTP
    POST  /sandbox/builds                {"name": ..., "base": ..., "requirements": [...], "seconds": 1800}: build it, or how it goes

Every token is accepted. Answers are JSON; a wrong request is answered with 400 and {"message": ...}, and a failure
that finds no pods with 409.
"""

import asyncio
from collections.abc import Callable, Mapping

import msgspec
from aiohttp import web

from grid.core.decoding import prepared
from grid.sandbox.apiserver import ApiServer
from grid.sandbox.apiserver.statemetrics import state_metrics
from grid.sandbox.builtimages import CannotBuild
from grid.sandbox.exposition import CONTENT_TYPE
from grid.sandbox.imagebuilds import BuildOrder, ImageBuilds
from grid.sandbox.poollimits import LimitsChanged, NodePools, WrongLimits
from grid.sandbox.population import Population, wrong_size
from grid.sandbox.prometheus import targets

MOST_COUNT, MOST_SECONDS = 1000, 300.0
_ANSWER_FIRST_SECONDS = 0.2


class _Resize(msgspec.Struct, forbid_unknown_fields=True):
    pods: int | None = None
    churn: float | None = None


class _Failure(msgspec.Struct, forbid_unknown_fields=True):
    pool: str = ""
    count: int = 10
    seconds: float = 15.0


class _Limits(msgspec.Struct, forbid_unknown_fields=True):
    minimum: int
    maximum: int
    was: tuple[int, int]


class Control:
    """The handler of these requests; `answer` is the server's `beside`."""

    def __init__(
        self,
        server: ApiServer,
        population: Population,
        builds: ImageBuilds | None = None,
        pools: NodePools | None = None,
    ) -> None:
        self._pools = pools
        self._builds = builds
        self._server = server
        self._population = population
        self._tasks: set[asyncio.Task[None]] = set()
        self._failures: Mapping[str, Callable[[_Failure], object]] = {
            "stock-out": lambda wanted: population.stock_out(wanted.pool, wanted.count),
            "bad-image": lambda wanted: population.bad_image(wanted.count),
            "out-of-memory": lambda wanted: population.out_of_memory(wanted.count),
            "crash-loop": lambda wanted: population.crash_loop(wanted.count),
            "node-lost": lambda wanted: population.lose_node(),
            "taint": lambda wanted: population.taint_node(),
            "pause": lambda wanted: server.interruptions.pause(wanted.seconds),
            "restart": lambda wanted: self._later(wanted.seconds),
            "history-dropped": lambda wanted: self._forget(),
        }

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        try:
            match request.method, request.path.strip("/").split("/")[1:]:
                case "GET", ["population"]:
                    return web.json_response(self._population.state())
                case "GET", ["kube-state-metrics"]:
                    return await self._state_metrics()
                case "GET", ["scrape-targets"]:
                    # Nodes that are only simulated have no kubelet.
                    nodes = [record.key for record in self._server.store.records("nodes") if record.is_kept]
                    return web.json_response(targets(self._server.address, nodes))
                case "PATCH", ["population"]:
                    return self._resize(msgspec.json.decode(body, type=prepared(_Resize)))
                case "POST", ["failures", name] if name in self._failures:
                    return self._fail(name, msgspec.json.decode(body or b"{}", type=prepared(_Failure)))
                case "GET", ["pools"] if self._pools is not None:
                    return web.json_response({"pools": self._pools.state()})
                case "PATCH", ["pools", name] if self._pools is not None:
                    return _limit(self._pools, name, msgspec.json.decode(body, type=prepared(_Limits)))
                case "POST", ["builds"] if self._builds is not None:
                    answer = self._builds.ask(msgspec.json.decode(body, type=prepared(BuildOrder)))
                    return web.json_response(msgspec.to_builtins(answer))
        except msgspec.DecodeError as problem:
            return _wrong(str(problem))
        except CannotBuild as problem:
            return _wrong(str(problem))
        return web.json_response({"message": "There is nothing of that name."}, status=404)

    async def _state_metrics(self) -> web.Response:
        store = self._server.store
        text = await state_metrics(store.records("nodes"), store.records("pods"))
        return web.Response(text=text, headers={"Content-Type": CONTENT_TYPE})

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._builds is not None:
            await self._builds.stop()

    def _resize(self, resize: _Resize) -> web.Response:
        if problem := wrong_size(pods=resize.pods or 0, churn=resize.churn or 0.0):
            return _wrong(problem)
        self._population.resize(pods=resize.pods, churn=resize.churn)
        return web.json_response(self._population.state())

    def _fail(self, name: str, wanted: _Failure) -> web.Response:
        if not 0 < wanted.count <= MOST_COUNT or not 0 < wanted.seconds <= MOST_SECONDS:
            return _wrong(f"Between 1 and {MOST_COUNT:,} pods, and up to {MOST_SECONDS:.0f} seconds.")
        pools = self._population.rooms.pools
        if name == "stock-out" and pools and wanted.pool not in pools:
            return _wrong(f"There is no pool {wanted.pool!r} in the population.")
        about = self._failures[name](wanted)
        if about in (0, ""):
            return web.json_response({"message": "Nothing can fail yet: add some pods first."}, status=409)
        return web.json_response({"about": about if isinstance(about, str) else ""}, status=202)

    def _later(self, seconds: float) -> None:
        async def away() -> None:
            await asyncio.sleep(_ANSWER_FIRST_SECONDS)
            await self._server.be_away(seconds)

        task = asyncio.create_task(away())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _forget(self) -> None:
        self._server.store.forget_everything()
        self._server.interruptions.cut_all()


def _limit(pools: NodePools, name: str, wanted: _Limits) -> web.Response:
    try:
        pools.limit(name, wanted.minimum, wanted.maximum, was=wanted.was)
    except KeyError:
        return web.json_response({"message": f"There is no pool {name!r}."}, status=404)
    except LimitsChanged as problem:
        return web.json_response({"message": str(problem)}, status=409)
    except WrongLimits as problem:
        return _wrong(str(problem))
    except OSError as problem:
        return web.json_response({"message": f"The limits cannot be stored: {problem.strerror}."}, status=507)
    return web.json_response({"pools": pools.state()})


def _wrong(message: str) -> web.Response:
    return web.json_response({"message": message}, status=400)
