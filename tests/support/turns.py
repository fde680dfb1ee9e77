"""Turns: what several workers of a test run must not do at the same time on one machine."""

import fcntl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def turn(name: str) -> Iterator[None]:
    """Wait until no other process has the turn of that name, and have it for the block. It ends with the process."""
    with (Path(tempfile.gettempdir()) / f"compute-grid-tests-{name}.lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def rays_turn() -> Iterator[None]:
    """Have Ray for oneself.

    Ray's client server takes the first port from 23000 that is free and listens there a moment later, on 127.0.0.1 and together with
    whoever else does. On one machine two clusters whose clients connect in the same moment may so answer each other's.
    """
    with turn("ray"):
        yield
