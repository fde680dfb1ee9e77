"""Fetches whole objects and logs from the cluster on request; an error becomes a sentence on the page."""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass

from grid.core.errors import ClusterUnavailable, GridError, NotAllowed, NotFound, TooManyRequests
from grid.core.translation import gettext as _
from grid.edge.textwork import TextWorkFailed

TIMEOUT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Fetched:
    """A fetched text, or in `problem` the reason why there is none."""

    text: str = ""
    problem: str = ""


async def fetched(text: Awaitable[str]) -> Fetched:
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            return Fetched(text=await text)
    except (GridError, TimeoutError) as error:
        return Fetched(problem=problem_of(error))


def problem_of(error: GridError | TimeoutError) -> str:
    """Return the sentence about an error of the cluster, with what to do."""
    match error:
        case TextWorkFailed():
            return str(error)
        case NotFound():
            return _("It is gone from the cluster, so there is nothing to fetch.")
        case NotAllowed():
            return _("The dashboard's account may not read this. An admin of the cluster has to allow it.")
        case ClusterUnavailable() if "/containerLogs/" in str(error):  # the API server asks the node's kubelet
            return _(
                "The pod's node did not answer, so its log cannot be read now. Reload this page in a minute; a lost node's log is gone."
            )
        case ClusterUnavailable() | TooManyRequests() | TimeoutError():
            return _("The cluster did not answer. Reload this page in a few seconds.")
    return _("The cluster refused: {error}", error=error)
