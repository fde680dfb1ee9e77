"""What a program prints: whole lines, in files of bounded size, while it runs, and through a full disk."""

import os
import subprocess
import sys
from pathlib import Path

from grid.management.supervisor import LogFile
from tests.support.smalldisk import fill


def written(path: Path) -> list[str]:
    """Oldest first."""
    older = sorted(path.parent.glob(f"{path.name}.*"), key=lambda file: -int(file.suffix[1:]))
    return [line for file in [*older, path] if file.exists() for line in file.read_text().splitlines()]


def printed(log: LogFile, text: bytes) -> None:
    """As a program that prints it and ends."""
    theirs = os.dup(log.input)
    log.start()
    with os.fdopen(theirs, "wb") as output:
        output.write(text)
    log.close(within=60)


def test_log_rotation_loses_and_tears_no_line(tmp_path: Path) -> None:
    path = tmp_path / "log" / "web.log"
    log = LogFile(path, file_bytes=10_000, older_files=20)
    code = "for n in range(3000): print(f'line {n:05} ' + 'x' * 40, flush=n % 7 == 0)"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=log.input)
    log.start()
    process.wait()
    log.close(within=60)
    assert written(path) == [f"line {number:05} {'x' * 40}" for number in range(3000)]
    assert max(file.stat().st_size for file in path.parent.iterdir()) <= 10_000


def test_only_the_newest_files_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "web.log"
    log = LogFile(path, file_bytes=1_000, older_files=2)
    printed(log, b"".join(b"%05d\n" % number for number in range(5_000)))
    assert {file.name for file in tmp_path.iterdir()} == {"web.log", "web.log.1", "web.log.2"}
    assert written(path)[-1] == "04999"
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 3_000


def test_full_disk_does_not_block_logging_and_lines_return(disk: Path) -> None:
    path = disk / "log" / "web.log"
    log = LogFile(path)
    ballast = fill(disk)
    printed(log, b"lost or late\n" * 20_000)
    ballast.unlink()
    printed(LogFile(path), b"there is room again\n")
    assert written(path)[-1] == "there is room again"
