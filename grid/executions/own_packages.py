"""Python's `sitecustomize` in a workspace's container: what its owner installs with pip goes to GRID_PACKAGES_PATH, on the home volume.

It runs in each Python there, before the program. The folder comes before the image's packages, so an upgrade counts; a Python started with
`-s`, as the IDE's server is, imports none of it, so no package can break the IDE. Pip is told that the folder is its environment, so it
takes the image's packages as installed and neither replaces nor removes them. A virtual environment of the user's own is left alone.

The image's Python may be as old as 3.8.
"""

# Without pathlib, which each Python would have to import.
# ruff: noqa: PTH118, PTH119, PTH120, PTH123

from __future__ import annotations

import importlib
import os
import site
import sys


def _runs_pip(argv: list[str]) -> bool:
    """Return whether pip is the program, and installs to its default place."""
    if "--user" in argv:
        return False
    is_module = "-m" in argv and argv[argv.index("-m") + 1 :][:1] == ["pip"]
    return is_module or any(_is_pip(os.path.basename(part)) for part in argv[1:2])


def _is_pip(name: str) -> bool:
    """Return whether it is "pip", or such as "pip3.12"."""
    return name.startswith("pip") and not name[3:].strip("0123456789.")


def _command_line() -> list[str]:
    """Return the arguments; `sys.argv` is not there yet, and Pythons before 3.10 have no `sys.orig_argv`."""
    if hasattr(sys, "orig_argv"):
        return list(sys.orig_argv)
    with open("/proc/self/cmdline", "rb") as file:
        return file.read().decode(errors="replace").rstrip("\0").split("\0")


def _use(place: str) -> None:
    name = "python{}.{}".format(*sys.version_info[:2])
    if not sys.flags.no_user_site:
        before = list(sys.path)
        for folder in dict.fromkeys(("lib", getattr(sys, "platlibdir", "lib"))):
            site.addsitedir(os.path.join(place, folder, name, "site-packages"))
        added = [path for path in sys.path if path not in before]
        images = [path for path in before if path.endswith(("site-packages", "dist-packages"))]
        at = before.index(images[0]) if images else len(before)
        sys.path[:] = [*before[:at], *added, *before[at:]]
    programs = os.path.join(place, "bin")
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    if programs not in folders:
        # Last, so that no program of the user's replaces one that the IDE starts.
        os.environ["PATH"] = os.pathsep.join([*folders, programs])
    if _runs_pip(_command_line()):
        sys.modules.pop("sysconfig", None)  # it remembers the prefix
        sys.prefix = sys.exec_prefix = place


def _is_in_a_volume(path: str) -> bool:
    volumes = [os.environ.get(name) for name in ("HOME", "GRID_PROJECT_PATH")]
    return any(volume and os.path.realpath(path).startswith(os.path.realpath(volume) + os.sep) for volume in volumes)


if __name__ == "sitecustomize":
    if os.environ.get("GRID_PACKAGES_PATH") and not _is_in_a_volume(sys.prefix):
        _use(os.environ["GRID_PACKAGES_PATH"])
    # The image may have a `sitecustomize` of its own, which this one hides.
    sys.path[:] = [path for path in sys.path if path != os.path.dirname(__file__)]
    _ours = sys.modules.pop("sitecustomize")
    try:
        importlib.import_module("sitecustomize")
    except ImportError:
        sys.modules["sitecustomize"] = _ours
