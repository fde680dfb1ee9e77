"""What people read of stored causes, also of old and unknown ones; what admission refuses is worded in tests/queue/test_quota.py."""

from grid.core.reasons import Reader, words_of
from grid.executions.stopping import stop_cause
from tests.support.shop import Shop

OWNER, OTHER = Reader("ada", is_owner=True), Reader("ada", is_owner=False)
STOP = {"by": "Compute Grid", "step": "ended", "why": "idle", "kind": "workspace", "with": ""}
STOPPED = "Stopped by Compute Grid, because nobody used it for too long. The project's files are kept."


def test_stop_for_idleness_is_worded_alike_for_everybody() -> None:
    assert [words_of("idle", STOP, "", reader) for reader in (OWNER, OTHER)] == [STOPPED, STOPPED]


def test_old_row_is_read_as_it_was_stored(shop: Shop) -> None:
    row = shop.launch()
    row.reason, row.reason_values, row.message = "over_user_slots", None, "You use 2 of 2 slots."
    assert row.words(OTHER) == "You use 2 of 2 slots."


def test_stop_for_an_unknown_reason_is_still_worded() -> None:
    """A process of before an upgrade may have recorded a reason that is none any more."""
    cause = stop_cause("ended", by="Compute Grid", reason="over_budget", kind="job")
    words = "Stopped by Compute Grid. The project's files are kept."
    assert (cause.code, words_of(cause.code, cause.values, "", OTHER)) == ("stopped", words)
