"""Builds of images on request: each is a task of this process, with a log that can be read meanwhile.

Asking is all there is: the first time begins the build, every further time says how it goes. Builds that a process did not finish are known
to nobody afterwards, so asking again begins again. An image that exists is ready, whoever made it.
"""

import asyncio
import contextlib
import logging
import secrets
import stat
from dataclasses import dataclass, field

import msgspec

from grid.sandbox.builtimages import BuildableCatalogue, CannotBuild
from grid.sandbox.imagestore import ImageStore, PulledImage, PullFailed
from grid.sandbox.layers import added_bytes

logger = logging.getLogger(__name__)

MOST_SECONDS = 4 * 3600.0
_LOG_BYTES = 64 * 1024
_LOG_FILE = "build.log"
_KEPT = 100  # ended builds that are remembered


class BuildOrder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An image to build: its name, the image it stands on, and what is installed on top."""

    name: str
    base: str
    requirements: tuple[str, ...]
    seconds: float = 1800.0


class BuildAnswer(msgspec.Struct, frozen=True):
    """How a build goes: "building", "ready" or "failed"; `id` differs for each time that it was begun."""

    id: str
    state: str
    message: str = ""
    log: str = ""
    digest: str = ""
    size_bytes: int = 0
    layer_bytes: int = 0


@dataclass
class _Build:
    order: BuildOrder
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    log: bytearray = field(default_factory=bytearray)
    task: "asyncio.Task[BuildAnswer] | None" = None

    @property
    def text(self) -> str:
        return self.log[-_LOG_BYTES:].decode(errors="replace").replace("\x00", "")


class ImageBuilds:
    """The builds of this process; `stop` ends them with their installers."""

    def __init__(self, store: ImageStore) -> None:
        self._store = store
        self._one_at_a_time = asyncio.Lock()  # as pulls are, and beside them: a build may take half an hour
        self._builds: dict[str, _Build] = {}

    def ask(self, order: BuildOrder) -> BuildAnswer:
        """Begin the build unless it was begun, and return how it goes. Raise CannotBuild."""
        catalogue = self._store.catalogue
        if not isinstance(catalogue, BuildableCatalogue):
            raise CannotBuild("This cluster only simulates its programs, so it builds no images.")
        if not 0 < order.seconds <= MOST_SECONDS:
            raise CannotBuild(f"A build takes up to {MOST_SECONDS:.0f} seconds.")
        build = self._builds.get(order.name)
        if build is None or build.order != order:
            catalogue.add(order.name, order.base, order.requirements)
            if build is not None and build.task is not None:
                build.task.cancel()
            build = self._builds[order.name] = _Build(order)
            build.task = asyncio.create_task(self._run(build), name=f"build of {order.name}")
            self._forget()
        if build.task is None or not build.task.done():
            return BuildAnswer(build.id, "building", log=build.text)
        return build.task.result()

    async def stop(self) -> None:
        tasks = [build.task for build in self._builds.values() if build.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, build: _Build) -> BuildAnswer:
        order = build.order
        try:
            was_there = self._store.present(order.name)
            if was_there:
                return await asyncio.to_thread(_ready, build, was_there)
            async with self._one_at_a_time, asyncio.timeout(order.seconds):
                pulled = await self._store.build(order.name, build.log)
        except TimeoutError:
            minutes = f"{order.seconds / 60:.0f} minutes"
            return self._failed(build, f"It was not built within {minutes}. Use fewer packages, or ones with wheels")
        except PullFailed as error:
            return self._failed(build, str(error))
        except Exception:
            logger.exception("image name=%s not built", order.name)
            return self._failed(build, "Building it failed for a reason that the cluster's own log tells")
        return await asyncio.to_thread(_ready, build, pulled)

    def _failed(self, build: _Build, why: str) -> BuildAnswer:
        logger.warning("image name=%s not built: %s", build.order.name, why)
        return BuildAnswer(build.id, "failed", message=f"{why.rstrip('.')}.".replace("\x00", ""), log=build.text)

    def _forget(self) -> None:
        ended = [name for name, build in self._builds.items() if build.task is not None and build.task.done()]
        for name in ended[:-_KEPT]:
            del self._builds[name]


def _ready(build: _Build, pulled: PulledImage) -> BuildAnswer:
    """Return the answer for an image that is there; its log is kept beside it, for who asks after a restart."""
    file = pulled.environment / _LOG_FILE
    with contextlib.suppress(OSError):
        if build.log:
            # A new file: the one that is there may be the base's, of which an image on top has a hard link.
            fresh = file.with_name(f"{_LOG_FILE}.{secrets.token_hex(8)}")
            with fresh.open("x", encoding="utf-8") as log:
                log.write(build.text)
            fresh.replace(file)
        elif stat.S_ISREG(file.lstat().st_mode):
            build.log += file.read_bytes()
    return BuildAnswer(
        build.id,
        "ready",
        log=build.text,
        digest=f"sha256:{pulled.image.digest}",
        size_bytes=pulled.size_bytes,
        layer_bytes=added_bytes(pulled.environment),
    )
