"""Notes in the database what keeps this process from its work as a controller, so that pages can say it although nobody leads."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from grid.controller.leader import Election
from grid.core.translation import gettext as _
from grid.platformhealth.outages import CANDIDATE, LEADER, NOTE_SECONDS, Outage, note

logger = logging.getLogger(__name__)


async def note_failures(
    data_plane: str,
    election: Election,
    cache_error: Callable[[], str],
    database: Callable[..., Awaitable[object]],
    *,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> None:
    """Note for ever what fails; `cache_error` returns why the leader's caches are behind, "" for well, or when it does not lead."""
    since = None
    while True:
        now, part, error = clock(), CANDIDATE, election.failure
        sentence = _("It cannot hold its Lease: {error}", error=error)
        if not error:
            part, error = LEADER, cache_error()
            sentence = _("It does not see the cluster: {error}", error=error)
        since = (since or now) if error else None
        if since is not None:
            try:
                await database(note, data_plane, Outage(part, sentence, since), now)
            except Exception as error:  # a lasting failure is logged by those who need the database for more
                logger.debug("failure of the controller not noted reason=%s", error)
        await asyncio.sleep(NOTE_SECONDS)
