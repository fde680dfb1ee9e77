"""Where the embedded cluster keeps its container images: pulling one makes a virtual environment of what the catalogue says.

There is one directory per image, made once and shared by all nodes and all processes with the same directory: an image exists when its
marker does, a lock file keeps two processes from making it at once, and the next pull removes what a killed one left behind. Of the
environment the installer gets only what it needs to reach a package index.
"""

import asyncio
import fcntl
import json
import logging
import os
import shutil
import signal
import time
import venv
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from grid.core.regexes import RepeatedExpression
from grid.sandbox import programs
from grid.sandbox.images import Image, ImageCatalogue
from grid.sandbox.installer import pip_command, uv_command
from grid.sandbox.layers import make_layer
from grid.sandbox.needs import Unmet, find, link
from grid.sandbox.nodeprograms import InstallFailed, install

logger = logging.getLogger(__name__)

_MARKER = "image.json"
_PACKAGES = "packages"
_LOCK_POLL_SECONDS = 0.2
_ERROR_LINES = 20
_LONGEST_ERROR = 500
_LONGEST_OUTPUT = 16 * 1024 * 1024
_NOT_IN_A_FILE_NAME = RepeatedExpression(r"[^A-Za-z0-9.]+")
# The variables for the installer: paths of programs and certificates, its own settings, proxies. Never tokens or DJANGO_*.
_INSTALLER_NAMES = frozenset(
    {"PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "NETRC"}
    | {"SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"}
)
_INSTALLER_PREFIX = "PIP_"
_INSTALLER_SUFFIX = "_PROXY"


class PullFailed(Exception):
    """The image cannot be pulled; the message is what `kubectl describe` will show."""


@dataclass(frozen=True, slots=True)
class PulledImage:
    """An image on this machine: its virtual environment and its size on disk."""

    image: Image
    environment: Path
    size_bytes: int


class ImageStore:
    """The images directory. One instance per process; pulls of one image wait for each other, also across processes."""

    def __init__(self, directory: Path, catalogue: ImageCatalogue | None = None) -> None:
        self.directory = directory
        self.catalogue = catalogue or ImageCatalogue()
        # Two installers at once would only slow each other down on a small machine, and a real kubelet pulls serially.
        self._one_at_a_time = asyncio.Lock()

    def present(self, name: str) -> PulledImage | None:
        image = self.catalogue.find(name)
        return self._read(image) if image is not None else None

    def all_present(self) -> list[PulledImage]:
        images = (self._read(image) for image in self.catalogue.images())
        return [pulled for pulled in images if pulled is not None]

    async def pull(self, name: str) -> tuple[PulledImage, float]:
        """Return the image, made if it is missing, and the seconds that this took without waiting for others.

        Raise `PullFailed`; cancelling ends the installer.
        """
        async with self._one_at_a_time:
            return await self._pull(name, None)

    async def build(self, name: str, log: bytearray) -> PulledImage:
        """Return the image, made if it is missing; pulls need not wait for it. What the installer says is added to the `log` as it comes.

        Raise `PullFailed`; cancelling ends the installer.
        """
        return (await self._pull(name, log))[0]

    async def _pull(self, name: str, log: bytearray | None) -> tuple[PulledImage, float]:
        image = self.catalogue.find(name)
        if image is None:
            known = ", ".join(self.catalogue.names())
            raise PullFailed(f'image "{name}" is not in the catalogue of this cluster, which has: {known}')
        try:
            async with self._locked(image) as lock:
                started = time.monotonic()
                pulled = self._read(image) or await self._make(image, lock, log)
                return pulled, time.monotonic() - started
        except OSError as error:
            raise PullFailed(f'cannot store image "{name}" in {self.directory}: {error.strerror or error}') from error

    def _place(self, image: Image) -> Path:
        readable = _NOT_IN_A_FILE_NAME.sub("-", image.name).strip("-.")[:60]
        return self.directory / f"{readable}-{image.digest[:12]}"

    def _read(self, image: Image) -> PulledImage | None:
        place = self._place(image)
        try:
            marker = json.loads((place / _MARKER).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return PulledImage(image, place, int(marker["size_bytes"]))

    @asynccontextmanager
    async def _locked(self, image: Image) -> AsyncIterator[int]:
        """Hold the image's lock file. The installer inherits it, so an installer that outlives this process still holds it."""
        self.directory.mkdir(parents=True, exist_ok=True)
        lock = os.open(self._place(image).with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    await asyncio.sleep(_LOCK_POLL_SECONDS)
            yield lock
        finally:
            os.close(lock)

    async def _base(self, image: Image, log: bytearray | None) -> Path:
        """Return the environment of an image's base, which is made if it is missing."""
        async with self._locked(image) as lock:
            return (self._read(image) or await self._make(image, lock, log)).environment

    async def _make(self, image: Image, lock: int, log: bytearray | None = None) -> PulledImage:
        place = self._place(image)
        base = await self._base(image.base, log) if image.base else None
        started = time.monotonic()
        try:
            programs = await find(image.needs, os.environ.get("PATH", os.defpath))
        except Unmet as error:
            raise PullFailed(str(error)) from error
        # Scripts in an environment hold its path, so it is made in place and counts only once its marker exists.
        await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)
        if base is not None:
            await asyncio.to_thread(make_layer, base, place, marker=_MARKER)
        else:
            await asyncio.to_thread(venv.create, place, symlinks=True, with_pip=False)
        if image.node_program is not None:
            try:
                await install(place, image.node_program, installer_environment(os.environ), lock)
            except InstallFailed as error:
                raise PullFailed(f'installing "{image.name}" failed: {error}'[:_LONGEST_ERROR]) from error
        if image.requirements:
            await _install(place, image, self.directory / _PACKAGES, lock, log)
            _start_kernels_safely(place)
        link(programs, place / "bin")
        size = await asyncio.to_thread(_size_of, place)
        marker = {"image": image.name, "requirements": image.requirements, "size_bytes": size}
        unfinished = place / f"{_MARKER}.unfinished"
        unfinished.write_text(json.dumps(marker), encoding="utf-8")
        unfinished.replace(place / _MARKER)
        logger.info("image name=%s made in %.1f s size=%d", image.name, time.monotonic() - started, size)
        return PulledImage(image, place, size)


async def _install(place: Path, image: Image, packages: Path, lock: int, log: bytearray | None) -> None:
    """Install what the image requires. What uv fetched is kept in the folder of `packages`, whose files its images share."""
    python, environment = place / "bin" / "python", installer_environment(os.environ)
    command, variables = [*pip_command(python), *(() if log is not None else ("--quiet",))], environment
    # A build's log and choice of versions are pip's, as on any other cluster.
    if log is None and (uv := await asyncio.to_thread(uv_command, python, environment)) is not None:
        command, variables = [*uv[0], "--quiet"], {**uv[1], "UV_CACHE_DIR": str(packages)}
    done = await programs.run(
        (*command, "--", *image.requirements), env=variables, longest=_LONGEST_OUTPUT, pass_fds=(lock,), output=log
    )
    if done.code < 0:
        name = signal.Signals(-done.code).name
        raise PullFailed(f'installing "{image.name}" ended by {name}: the machine may lack memory. Try again')
    if done.code != 0:
        text = done.output.decode(errors="replace")
        logger.warning("image name=%s not made:\n%s", image.name, "\n".join(text.splitlines()[-_ERROR_LINES:]))
        raise PullFailed(f'installing "{image.name}" failed: {_last_error(text)}')


def _start_kernels_safely(place: Path) -> None:
    """Start kernels with `-P`, so that Python does not import modules from the notebook's folder first.

    A kernel starts in that folder, so an `ipykernel_launcher.py` that one user writes there would otherwise run for
    everybody who opens a notebook. Once the kernel is up, the folder is appended to the path, so that a notebook
    finds the modules beside it.
    """
    for file in place.glob("share/jupyter/kernels/*/kernel.json"):
        kernel = json.loads(file.read_text(encoding="utf-8"))
        if kernel["argv"][1:3] == ["-m", "ipykernel_launcher"]:
            kernel["argv"].insert(1, "-P")
            kernel["argv"].append("--IPKernelApp.code_to_run=__import__('sys').path.append('')")
            file.write_text(json.dumps(kernel, indent=1), encoding="utf-8")


def installer_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a package installer needs, and none that could be a secret of ours."""
    return {
        name: value
        for name, value in environment.items()
        if name in _INSTALLER_NAMES or name.startswith(_INSTALLER_PREFIX) or name.upper().endswith(_INSTALLER_SUFFIX)
    }


def _last_error(output: str) -> str:
    """Return the last error with the lines that are indented below it, in which uv says the cause."""
    lines = [line.rstrip() for line in output.splitlines() if line.strip()] or ["the installer said nothing"]
    errors = [number for number, line in enumerate(lines) if line.lower().startswith("error:")]
    first = errors[-1] if errors else len(lines) - 1
    causes = takewhile(lambda line: line[0].isspace(), lines[first + 1 :])
    return " ".join([lines[first].strip(), *(line.strip() for line in causes)])[:_LONGEST_ERROR]


def _size_of(directory: Path) -> int:
    return sum(path.lstat().st_size for path in directory.rglob("*") if path.is_file() and not path.is_symlink())
