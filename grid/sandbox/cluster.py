"""The embedded cluster as one asyncio process: API server, controllers and kubelets, each supervised.

All parts but the API server are clients of it and of nothing else, with identities of their own. A part that fails is logged and
started again after a delay; the others go on, as they would on a real cluster. Two processes never share a data directory: the
lock is the operating system's, so it ends with the process that held it, however that ended.
"""

import asyncio
import contextlib
import fcntl
import logging
import os
import resource
import sqlite3
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from grid.core.data_files import LEAST_ROOM, damages, lack_of_room
from grid.sandbox.apiserver import ApiServer, Tokens
from grid.sandbox.apiserver.certificates import write_private
from grid.sandbox.apiserver.furnishing import furnish_repositories
from grid.sandbox.apiserver.identity import CONTEXTS, KUBELET_CLIENT
from grid.sandbox.builtimages import BuildableCatalogue
from grid.sandbox.client import Client
from grid.sandbox.control import Control
from grid.sandbox.controllers.autoscaler import AutoscalerSettings, ClusterAutoscaler
from grid.sandbox.controllers.manager import ControllerManager
from grid.sandbox.controllers.nodelifecycle import NodeTimeouts
from grid.sandbox.controllers.scaling.model import ScalingSettings
from grid.sandbox.controllers.scheduler import Scheduler
from grid.sandbox.data_files import KEPT_FILES
from grid.sandbox.imagebuilds import ImageBuilds
from grid.sandbox.images import BadCatalogue, ImageCatalogue
from grid.sandbox.imagestore import ImageStore
from grid.sandbox.kubelet import Fleet, FleetSettings, run_kubelets
from grid.sandbox.kubelet.simulated_runtime import SimulatedImages
from grid.sandbox.metricsserver import MetricsServer
from grid.sandbox.poollimits import NodePools
from grid.sandbox.pools import DEFAULT_POOLS, NodePool
from grid.sandbox.population import Population, Size
from grid.sandbox.provisioner import DirectoryProvisioner

log = logging.getLogger(__name__)

_RESTART_SECONDS = 2.0
_FILES = 65536
_HISTORY, _REMEMBERED_SECONDS = 5000, 300


class CannotStart(Exception):
    """The cluster cannot start; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class EmbeddedClusterSettings:
    """The directories, sizes and durations of the embedded cluster.

    `catalogue` is a TOML file with further images; with `metrics_server` another cluster gets metrics.k8s.io for the
    nodes that join it. The `population` is in the `namespace` of the executions.
    """

    data: Path
    port: int
    kubeconfig: Path
    images: Path
    catalogue: Path | None = None
    pools: Sequence[NodePool] = DEFAULT_POOLS
    autoscaler: AutoscalerSettings = field(default_factory=AutoscalerSettings)
    patience: NodeTimeouts = field(default_factory=NodeTimeouts)
    scaling: ScalingSettings = field(default_factory=ScalingSettings)
    fleet: FleetSettings = field(default_factory=FleetSettings)
    metrics_server: bool = False
    population: Size = field(default_factory=Size)
    namespace: str = "compute-grid"
    native_sidecars: bool = True


@dataclass(frozen=True, slots=True)
class Component:
    """A part that runs next to the API server: `run` gets a client with the part's own identity."""

    name: str
    context: str
    run: Callable[[Client], Awaitable[None]]


class DataLock:
    """A lock on a data directory for this process. Raise `CannotStart` if the disk is full or a file in it is unusable."""

    def __init__(self, data: Path) -> None:
        full = lack_of_room(data, LEAST_ROOM)
        if problems := [full] if full else damages(data, KEPT_FILES):
            raise CannotStart("\n".join(problems))
        try:
            data.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._file = (data / "lock").open("w")
        except OSError as problem:
            raise CannotStart(
                f"The sandbox cannot write to {data} ({problem.strerror}); choose another directory with --data."
            ) from problem
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as problem:
            self._file.close()
            raise CannotStart(
                f"Another sandbox is already running on {data}; stop it or choose another --data."
            ) from problem

    def release(self) -> None:
        self._file.close()


@contextlib.contextmanager
def _starting(data: Path) -> Iterator[None]:
    """Turn errors that the check of the files could not foresee into `CannotStart`: a full disk, a limit of this user."""
    try:
        yield
    except sqlite3.Error as problem:
        raise CannotStart(f"The sandbox cannot use {data / 'cluster.sqlite3'} ({problem}).") from problem
    except OSError as problem:
        raise CannotStart(f"The sandbox cannot use {problem.filename or data} ({problem.strerror}).") from problem


def allow_many_files() -> None:
    """Raise this process's limit of open files: watches and forwarded connections need many, and the default is often 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def run_cluster(settings: EmbeddedClusterSettings, stop: asyncio.Event, ready: Callable[[str], None]) -> None:
    """Run until `stop` is set. `ready` is called with the server's URL once the kubeconfig is written."""
    images = _image_store(settings)
    lock = DataLock(settings.data)
    try:
        with _starting(settings.data):
            tokens = Tokens.load_or_make(settings.data / "tokens.json")
            # Five minutes of history, as in a real cluster, so that a list of everything can be read in pages meanwhile.
            history = max(_HISTORY, int(settings.population.churn * _REMEMBERED_SECONDS))
            server = ApiServer(settings.data, tokens, history=history)
            server.registry.native_sidecars = settings.native_sidecars
            repositories = settings.data / "machine" / "repositories"
            furnish_repositories(server.registry, repositories, namespace=settings.namespace)
        population = Population(server.registry, settings.population, namespace=settings.namespace)
        pools = NodePools(settings.pools, settings.data / "pools.json")
        control = Control(server, population, ImageBuilds(images), pools)
        server.beside = control.answer
        simulated = asyncio.create_task(supervise("population", population.run), name="population")
        try:
            url = await _listen(server, settings)
            ready(url)
            async with client_of(server, "kubelet") as client:
                fleet_settings = replace(settings.fleet, kubelet_token=tokens.by_name[KUBELET_CLIENT])
                fleet = Fleet(
                    client, data_dir=settings.data / "machine", images=images, pools=pools, settings=fleet_settings
                )
                with _starting(settings.data):
                    await fleet.start()
                try:
                    await run_parts(_parts(settings, fleet, pools), partial(client_of, server), stop)
                finally:
                    await fleet.stop()
        finally:
            simulated.cancel()
            await asyncio.gather(simulated, return_exceptions=True)
            await control.stop()
            await server.stop()
    finally:
        lock.release()


def client_of(server: ApiServer, context: str = "admin") -> Client:
    """Return a client of a server that listens, with an identity of its kubeconfig."""
    token = server.tokens.by_name[CONTEXTS[context]]
    return Client.with_token(f"https://{server.address}", token, server.certificate.authority)


async def run_nodes(settings: EmbeddedClusterSettings, stop: asyncio.Event) -> None:
    """Run only the kubelets, for the API server that the kubeconfig names, until `stop` is set."""
    images = _image_store(settings)
    lock = DataLock(settings.data)
    try:
        async with Client.from_kubeconfig(settings.kubeconfig) as client:
            work = asyncio.create_task(
                run_kubelets(
                    client,
                    data_dir=settings.data / "machine",
                    images=images,
                    pools=settings.pools,
                    settings=settings.fleet,
                    background=lambda fleet: _background(settings, client, fleet),
                )
            )
            stopping = asyncio.create_task(stop.wait())
            await asyncio.wait({work, stopping}, return_when=asyncio.FIRST_COMPLETED)
            for task in (work, stopping):
                task.cancel()
            ended, _ = await asyncio.gather(work, stopping, return_exceptions=True)
            if isinstance(ended, Exception):
                raise ended
    finally:
        lock.release()


def _background(settings: EmbeddedClusterSettings, client: Client, fleet: Fleet) -> Sequence[Coroutine[Any, Any, None]]:
    if not settings.metrics_server:
        return ()
    return (MetricsServer(client, fleet.summaries, settings.data / "machine").run(),)


def _image_store(settings: EmbeddedClusterSettings) -> ImageStore:
    if settings.fleet.simulated:
        return SimulatedImages(settings.images)
    try:
        catalogue = ImageCatalogue.with_file(settings.catalogue) if settings.catalogue else ImageCatalogue()
    except BadCatalogue as problem:
        raise CannotStart(str(problem)) from problem
    return ImageStore(settings.images, BuildableCatalogue(settings.images, catalogue))


async def _listen(server: ApiServer, settings: EmbeddedClusterSettings) -> str:
    port = settings.port
    try:
        url = await server.start(port)
    except OSError as problem:
        raise CannotStart(
            f"The sandbox cannot listen on port {port} ({os.strerror(problem.errno or 0)}); choose another with --port, "
            "or 0 for any."
        ) from problem
    try:
        settings.kubeconfig.parent.mkdir(parents=True, exist_ok=True)
        write_private(settings.kubeconfig, server.kubeconfig())
    except OSError as problem:
        raise CannotStart(
            f"The sandbox cannot write {settings.kubeconfig} ({problem.strerror}); choose another file with --kubeconfig."
        ) from problem
    return url


def _parts(settings: EmbeddedClusterSettings, fleet: Fleet, pools: NodePools) -> Sequence[Component]:
    async def manage(client: Client) -> None:
        await ControllerManager(client, patience=settings.patience, scaling=settings.scaling).run()

    async def provision(client: Client) -> None:
        await DirectoryProvisioner(client, directory=settings.data / "machine" / "volumes").run()

    async def schedule(client: Client) -> None:
        await Scheduler(client).run()

    async def scale_nodes(client: Client) -> None:
        await ClusterAutoscaler(client, cloud=fleet, pools=pools, settings=settings.autoscaler).run()

    return [
        Component("controller manager", "controller-manager", manage),
        Component("volume provisioner", "controller-manager", provision),
        Component("scheduler", "scheduler", schedule),
        Component("node autoscaler", "cluster-autoscaler", scale_nodes),
    ]


async def run_parts(
    parts: Sequence[Component],
    client_of: Callable[[str], Client],
    stop: asyncio.Event,
    *,
    restart_seconds: float = _RESTART_SECONDS,
) -> None:
    """Run all parts until `stop` is set, and then cancel them."""
    tasks = [
        asyncio.create_task(
            supervise(part.name, partial(_with_client, part, client_of), restart_seconds=restart_seconds),
            name=part.name,
        )
        for part in parts
    ]
    try:
        await stop.wait()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _with_client(part: Component, client_of: Callable[[str], Client]) -> None:
    async with client_of(part.context) as client:
        await part.run(client)


async def supervise(
    name: str, run: Callable[[], Awaitable[None]], *, restart_seconds: float = _RESTART_SECONDS
) -> None:
    """Run a part until cancelled: when it fails or ends, start it again."""
    while True:
        try:
            await run()
            log.warning("the %s ended; starting it again in %s s", name, restart_seconds)
        except Exception:
            log.exception("the %s failed; starting it again in %s s", name, restart_seconds)
        await asyncio.sleep(restart_seconds)
