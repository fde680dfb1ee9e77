"""What is said of a refusal of the API server: the reason, the next step with who can take it, and whether a retry may help; pure."""

from dataclasses import dataclass

from grid.core.translation import gettext as _

_LONGEST = 200
ASK_ADMIN = _("Ask an admin of the cluster.")
# What the cluster repairs, or an admin of it: the controller tries again until the time of the start-up is over.
TRIED_AGAIN = _("It is tried again by itself; if that does not help, ask an admin of the cluster.")


@dataclass(frozen=True, slots=True)
class RefusalReason:
    """The reason in words and what to do; `for_good` when trying again without a change is useless."""

    code: str
    sentence: str
    next_step: str
    for_good: bool = True


def quoted(text: str) -> str:
    """Return what the API server or a webhook says, on one line and of bounded length."""
    one_line = " ".join(text.split())
    return one_line if len(one_line) <= _LONGEST else f"{one_line[: _LONGEST - 1]}…"
