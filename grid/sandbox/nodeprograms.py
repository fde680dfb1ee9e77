"""Programs from npm in an image, such as code-server.

The install scripts of packages do not run: they would build modules that a server never uses and that need headers of other libraries, or
download from elsewhere than the registry. The native modules that the program needs are built one by one instead.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from grid.sandbox import programs

_FOLDER = "node"
_LONGEST_OUTPUT = 1024 * 1024
_OPTIONS = ("--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error")
_NAMES = frozenset({"NODE_EXTRA_CA_CERTS", "NPM_CONFIG_REGISTRY", "NPM_CONFIG_CAFILE", "NPM_CONFIG_CACHE"})


class InstallFailed(Exception):
    """A step has failed; the message has the end of what it said."""


@dataclass(frozen=True, slots=True)
class NodeProgram:
    """A package with its exact version, and the program of it that is linked into the image.

    `inner` is a folder of `node_modules` with dependencies of its own that the package's install script would fetch, "" without; `builds`
    are the commands that compile its native modules, which run beside `node_modules` with the programs that come with npm.
    """

    package: str
    program: str
    inner: str = ""
    builds: tuple[str, ...] = ()


async def install(place: Path, program: NodeProgram, environment: Mapping[str, str], lock: int) -> None:
    """Install the program below `place` and link it into its `bin`. Raise `InstallFailed`."""
    folder = place / _FOLDER
    folder.mkdir()
    modules = folder / "node_modules"
    await _npm(folder, ("install", "--ignore-scripts", program.package), environment, lock)
    if program.inner:
        await _npm(modules / program.inner, ("install", "--omit=dev", "--ignore-scripts"), environment, lock)
    for build in program.builds:
        await _npm(folder, ("exec", "--offline", "-c", build), environment, lock)
    (place / "bin" / program.program).symlink_to(modules / ".bin" / program.program)


async def _npm(folder: Path, arguments: tuple[str, ...], environment: Mapping[str, str], lock: int) -> None:
    chosen = {name: value for name, value in os.environ.items() if name.upper() in _NAMES}
    command, *rest = arguments
    done = await programs.run(
        ("npm", command, *_OPTIONS, *rest),
        env={**environment, **chosen},
        longest=_LONGEST_OUTPUT,
        cwd=str(folder),
        pass_fds=(lock,),
    )
    if done.code != 0:
        lines = [line for line in done.output.decode(errors="replace").splitlines() if line.strip()]
        raise InstallFailed(f"npm {' '.join(arguments)}: {' '.join(lines[-3:]) or 'it said nothing'}")
