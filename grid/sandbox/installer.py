"""What installs Python packages on this machine: uv where it is there and understands pip's settings, pip otherwise.

    python -m grid.sandbox.installer ARGUMENTS      as `pip install ARGUMENTS`, into the environment of this Python

uv took 2.0 s for JupyterLab where pip took 16.2. It does not read pip's configuration, in which an organisation names its package index, so
its settings are made of pip's; with one that has no counterpart, pip stays the way. Only the standard library is imported: this runs in an
environment that is still empty.
"""

import ast
import importlib.util
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

# How uv reads what `pip config list` names: https://docs.astral.sh/uv/reference/environment/
_COUNTERPARTS = {
    "cert": "SSL_CERT_FILE",
    "constraint": "UV_CONSTRAINT",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "index-url": "UV_DEFAULT_INDEX",
    "timeout": "UV_HTTP_TIMEOUT",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "trusted-host": "UV_INSECURE_HOST",
}
# Of how pip speaks and keeps what it fetched, which does not change what is installed.
_WITHOUT_EFFECT = {
    "break-system-packages", "cache-dir", "config-file", "disable-pip-version-check", "no-cache-dir", "no-color", "no-input",
    "no-warn-script-location", "progress-bar", "quiet", "require-virtualenv", "retries", "root-user-action", "verbose",
}  # fmt: skip
_SECTIONS = ("global", "install", ":env:")  # the later ones come first


class Settings(NamedTuple):
    """What uv is told in place of pip's configuration: in variables what may hold a password, since others see a command."""

    options: list[str]
    variables: dict[str, str]


def settings_for_uv(listed: str) -> Settings | None:
    """Return uv's settings for what `pip config list` printed; None when uv has no counterpart of one of them."""
    of_pip: dict[str, str] = {}
    for section in _SECTIONS:
        for line in listed.splitlines():
            where, _, value = line.partition("=")
            if where.startswith(f"{section}."):
                of_pip[where.removeprefix(f"{section}.").lower()] = " ".join(str(ast.literal_eval(value)).split())
    has_no_index = of_pip.pop("no-index", "") in ("1", "on", "true", "yes")
    if of_pip.keys() - _COUNTERPARTS.keys() - _WITHOUT_EFFECT:
        return None
    variables = {_COUNTERPARTS[name]: value for name, value in of_pip.items() if name in _COUNTERPARTS}
    if "UV_FIND_LINKS" in variables:
        variables["UV_FIND_LINKS"] = variables["UV_FIND_LINKS"].replace(" ", ",")
    # As pip does: the best version of all indexes, not the versions of the first index that has any.
    return Settings(["--no-index"] if has_no_index else [], {**variables, "UV_INDEX_STRATEGY": "unsafe-best-match"})


def pip_command(python: Path | str) -> list[str]:
    """Return the beginning of a command that installs into the environment of that Python."""
    command = [sys.executable, "-I", "-m", "pip", "--python", str(python), "install", "--no-input", "--no-color"]
    return [*command, "--disable-pip-version-check", "--progress-bar=off"]


def uv_command(python: Path | str, environment: Mapping[str, str]) -> tuple[list[str], dict[str, str]] | None:
    """Return the same for uv, with the variables that it needs: it reads no file of settings, nor fetches another Python. None where there
    is no uv, or where pip is set up in a way that uv does not know."""
    if importlib.util.find_spec("uv") is None:
        return None
    command = [sys.executable, "-I", "-m", "pip", "config", "list"]
    listed = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    settings = settings_for_uv(listed.stdout) if listed.returncode == 0 else None
    if settings is None:
        return None
    options = ["--no-config", "--no-python-downloads", "--no-progress", "--color=never", *settings.options]
    uv = [sys.executable, "-I", "-m", "uv", "pip", "install", *options, "--python", str(python)]
    return uv, {**environment, **settings.variables}


def install(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Install into the environment of this Python as `pip install` would, and return its exit code. Where uv fails, pip tries, whose words
    tell why it cannot either."""
    uv = uv_command(sys.executable, environment)
    if (
        uv is not None
        and not subprocess.run([*uv[0], *arguments], env=uv[1], capture_output=True, check=False).returncode
    ):
        return 0
    return subprocess.run(
        [*pip_command(sys.executable), "--quiet", *arguments], env=environment, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(install(sys.argv[1:], os.environ))
