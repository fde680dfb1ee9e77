"""Run a command beside a real PostgreSQL server that lives as long as the command: `python -m tests.support.postgresql pytest ...`.

The server's data are in a temporary folder and need not survive a power cut. It listens on a free port of this machine with a random
password. TEST_DATABASE_URL names it; `tests.settings` reads that.
"""

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.support.ports import free_ports

VARIABLE = "TEST_DATABASE_URL"
_HURRIED = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=100")


def programs() -> Path | None:
    """Return the folder of PostgreSQL's server programs, the newest where there are several; Debian keeps them out of PATH."""
    initdb = shutil.which("initdb")
    if initdb:
        return Path(initdb).resolve().parent
    installed = Path("/usr/lib/postgresql").glob("[0-9]*/bin/initdb")
    return max((path.parent for path in installed), key=lambda folder: int(folder.parent.name), default=None)


@contextlib.contextmanager
def server(bin: Path) -> Iterator[str]:
    """Yield the URL of an empty database."""
    # PostgreSQL refuses to run as root, so root lends it the account that Debian's package makes.
    account = "postgres" if os.geteuid() == 0 else None
    port, password = free_ports(), secrets.token_hex(16)
    with tempfile.TemporaryDirectory(prefix="postgresql-") as name:
        folder = Path(name)
        (folder / "password").write_text(password)
        if account:
            for path in (folder, folder / "password"):
                shutil.chown(path, account, account)

        def run(program: str, *arguments: str) -> None:
            done = subprocess.run(
                [bin / program, "--pgdata", folder / "data", *arguments],
                cwd=folder,
                user=account,
                group=account,
                extra_groups=[] if account else None,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
            )
            if done.returncode:
                raise SystemExit(f"{program}: {done.stderr}{done.stdout}")

        # Not the locale of who runs it, which may not be installed, or sort in its own way.
        locale = ("--encoding=UTF8", "--locale=C.UTF-8")
        run(
            "initdb", "--username=grid", f"--pwfile={folder / 'password'}", "--auth=scram-sha-256", "--no-sync", *locale
        )
        options = [f"-c {setting}" for setting in (*_HURRIED, f"port={port}", f"unix_socket_directories={folder}")]
        run("pg_ctl", "start", "--wait", f"--log={folder / 'log'}", "--options", " ".join(options))
        try:
            yield f"postgres://grid:{password}@127.0.0.1:{port}/postgres"
        finally:
            run("pg_ctl", "stop", "--mode=immediate")


def main(command: Sequence[str]) -> int:
    bin = programs()
    if bin is None:
        raise SystemExit("There is no PostgreSQL server on this machine; on Debian: apt-get install postgresql")
    for name in (signal.SIGTERM, signal.SIGHUP):  # the server is stopped whatever ends this
        signal.signal(name, lambda number, _: sys.exit(128 + number))
    with server(bin) as url:
        return subprocess.run(command, env=os.environ | {VARIABLE: url}).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
