"""What the owner, another and a program read of each stored cause."""

import pytest

from grid.core.reasons import Reader, Values, words_of
from grid.executions.stopping import stop_cause
from tests.support.shop import Shop

OWNER, OTHER = Reader("ada", is_owner=True), Reader("ada", is_owner=False)
PARTS = [["workspace", 1], ["cluster", 4]]
SLOTS = {"held": 9, "most": 9, "slots": 5, "parts": PARTS, "position": 2}
LARGE = {"slots": 5, "parts": PARTS, "most": 4}
TIER = {"tier": "GPU", "held": 1, "maximum": 1, "parts": ["job"], "position": 3}
TAIL = (
    "uses 9 of 9 slots; this starts by itself when 5 are free (1 for the workspace and 4 for the cluster). Position 2."
)
LIMIT = "This takes 5 slots (1 for the workspace and 4 for the cluster), and one user may hold 4."
FULL = "The tier GPU runs 1 of at most 1 executions at once; this starts by itself when one of them ends. Position 3."
STOP = {"by": "Compute Grid", "step": "ended", "why": "idle", "kind": "workspace", "with": ""}
STOPPED = "Stopped by Compute Grid, because nobody used it for too long. The project's files are kept."


@pytest.mark.parametrize(
    ("code", "values", "owner", "other"),
    [
        ("over_user_slots", SLOTS, f"You {TAIL.replace('uses', 'use', 1)}", f"ada {TAIL}"),
        (
            "larger_than_limit",
            LARGE,
            f"{LIMIT} Give the cluster fewer workers, or ask your admin for more slots.",
            LIMIT,
        ),
        ("over_tier_maximum", TIER, FULL, FULL),
        ("idle", STOP, STOPPED, STOPPED),
    ],
)
def test_cause_is_worded_for_its_reader(code: str, values: Values, owner: str, other: str) -> None:
    assert (words_of(code, values, "", OWNER), words_of(code, values, "", OTHER)) == (owner, other)


def test_old_row_is_read_as_it_was_stored(shop: Shop) -> None:
    row = shop.launch()
    row.reason, row.reason_values, row.message = "over_user_slots", None, "You use 2 of 2 slots."
    assert row.words(OTHER) == "You use 2 of 2 slots."


def test_stop_for_an_unknown_reason_is_still_worded() -> None:
    """A process of before an upgrade may have recorded a reason that is none any more."""
    cause = stop_cause("ended", by="Compute Grid", reason="over_budget", kind="job")
    words = "Stopped by Compute Grid. The project's files are kept."
    assert (cause.code, words_of(cause.code, cause.values, "", OTHER)) == ("stopped", words)
