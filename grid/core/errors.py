"""The errors that Compute Grid raises across package borders.

    GridError
    +-- ClusterUnavailable     the API server does not answer, or answers 5xx
    +-- NotAllowed             401 or 403
    +-- NotFound               404
    +-- Conflict               409: somebody else changed or created it first
    +-- Expired                410: the version or page token is too old, list again
    +-- TooManyRequests        429: try again after `retry_after` seconds
    +-- Rejected               400, 422 or our own validation: every problem with its path

Foreign exceptions are translated at the edge (`grid.kube.errors`) and chained as the cause, so that nobody else
needs to know which HTTP library is below.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of a request: `path` names the field ("" for the whole request), `message` is a sentence for its reader."""

    path: str
    message: str
    code: str = "invalid"

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class GridError(Exception):
    """Root of all errors raised on purpose. `retry_after` is the seconds that a server asked to wait with 429, else 0."""

    retry_after = 0.0


class ClusterUnavailable(GridError):
    """The cluster's API server cannot be reached or is failing; trying again later is right."""


class NotAllowed(GridError):
    """The caller lacks the right; trying again changes nothing."""


class NotFound(GridError):
    """The object does not exist."""


class Conflict(GridError):
    """The object exists already, or has changed since it was read."""


class Expired(GridError):
    """The resource version or the continue token is too old: list again."""


class TooManyRequests(GridError):
    """The server asks to wait."""

    def __init__(self, message: str, *, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Rejected(GridError):
    """The request itself is wrong; `problems` holds all of them, not only the first."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(str(problem) for problem in problems))
        self.problems = tuple(problems)

    @property
    def sentences(self) -> str:
        """Return what is wrong as a reader is told."""
        return " ".join(problem.message for problem in self.problems)
