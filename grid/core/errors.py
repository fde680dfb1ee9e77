"""The errors that Compute Grid raises across package borders.

Foreign exceptions are translated at the edge (`grid.kube.errors`) and chained as the cause, so that nobody else needs to know which HTTP
library is below.
"""

import os
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass

from grid.core.translation import gettext as _


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
    """The cluster's API server does not answer, or answers 5xx; trying again later is right."""


class NotAllowed(GridError):
    """The caller lacks the right (401, 403); trying again changes nothing."""


class NotFound(GridError):
    """The object does not exist (404)."""


class Conflict(GridError):
    """The object exists already, or has changed since it was read (409)."""


class Expired(GridError):
    """The resource version or the continue token is too old (410): list again."""


class TooManyRequests(GridError):
    """The server asks to wait (429): try again after `retry_after` seconds."""

    def __init__(self, message: str, *, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Rejected(GridError):
    """The request itself is wrong (400, 422, or our own validation); `problems` holds all of them, not only the first."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(str(problem) for problem in problems))
        self.problems = tuple(problems)

    @property
    def sentences(self) -> str:
        """Return what is wrong as a reader is told."""
        return " ".join(problem.message for problem in self.problems)


def rejection(message: str, code: str = "invalid", *, path: str = "") -> Rejected:
    """Return the refusal of a request that has one problem, of the whole request without a `path`."""
    return Rejected([Problem(path, message, code)])


def why_unreached(error: BaseException) -> str:
    """Return in words why a server could not be asked, by the first known error among the causes; never a text of the error, which may
    hold an address with its password."""
    each: BaseException | None = error
    while each is not None:
        match each:
            case TimeoutError():
                return _("no answer in time")
            case ssl.SSLCertVerificationError():
                return _("its certificate is not valid")
            case ssl.SSLError():
                return _("its TLS is not as expected")
            case socket.gaierror():
                return _("its name leads to no address")
            case OSError(errno=int(number)) if number > 0:  # in lower case, to stand within a sentence
                return os.strerror(number).lower()
        each = each.__cause__ or each.__context__
    is_odd = isinstance(error, ValueError | LookupError | TypeError | AttributeError)
    return _("the answer is not understood") if is_odd else _("the connection broke")
