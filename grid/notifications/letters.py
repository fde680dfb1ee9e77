"""The words of what leaves the page: a message says what has happened, why, what to do next, and where to read more; pure.

Titles and sentences come from people and programs. In a subject they are one line without control characters; in a text they are what
they are, because nothing there is markup.
"""

import json
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from grid.core.translation import gettext as _
from grid.core.wording import plural


@dataclass(frozen=True, slots=True)
class SendResult:
    """`error` is a sentence for the person it was for, "" when it was sent; a final one is not tried again."""

    error: str = ""
    is_final: bool = False

    @property
    def is_sent(self) -> bool:
        return not self.error


SENT = SendResult()
TEST = "test"
CONFIRM_ADDRESS = "confirm_address"  # to a new address
ADDRESS_CHANGED = "address_changed"  # to the one in use before
LETTERS = (CONFIRM_ADDRESS, ADDRESS_CHANGED)  # which say themselves where they go
ALONE = (TEST, *LETTERS)  # which wait for no other message, and are merged with none
_SUBJECT_LENGTH = 120
_WHAT = {
    "started": _("{title} is running"),
    "succeeded": _("{title} has succeeded"),
    "failed": _("{title} has failed"),
    "stopping_soon": _("{title} is about to be stopped"),
    "stopped": _("{title} was stopped"),
    "schedule_paused": _("The schedule of {title} was paused"),
    "files_not_saved": _("Files of {title} could not be saved as usual"),
    "maintenance": _("No new launches during maintenance"),
    "message": _("A message about your executions"),
    "alert": "{title}",
    "budget": _("The budget of {title} has reached a line"),
    "queue_position": _("{title} is near the front of the queue"),
    "cpu_contention": _("{title} may be short of CPU"),
    TEST: _("This is a test"),
    CONFIRM_ADDRESS: _("Confirm your new e-mail address"),
}
_NEXT = {
    "started": _("Open it on its page:"),
    "succeeded": _("Its results and its log are on its page:"),
    "failed": _("Its log and what led to it are on its page, where you can launch it again:"),
    "stopping_soon": _("Save what you need. Read more on:"),
    "stopped": _("Its page says who stopped it and why:"),
    "schedule_paused": _("Correct what is wrong and resume the schedule on the page of its job:"),
    "files_not_saved": _("Where they are kept is on its page:"),
    "maintenance": _("Your executions are on:"),
    "message": _("Your executions are on:"),
    "alert": _("What to do, and what else fires, are on:"),
    "budget": _("Its course, and what was spent, are on:"),
    "queue_position": _("Its place, and what it waits for, are on its page:"),
    "cpu_contention": _("What it uses, and its tier, are on its page:"),
    TEST: _("Nothing else is to be done. You choose what you are told on:"),
    CONFIRM_ADDRESS: _("Open this link within three days, log in if you are asked to, and confirm:"),
    ADDRESS_CHANGED: _("If it was not you, change your password and end the other sessions on:"),
}

Payload = Mapping[str, Any]


def payload_of(
    event: str, title: str, sentence: str, path: str, at: datetime, *, kind: str = "", execution_id: str = ""
) -> dict[str, Any]:
    """Return what a delivery stores of its message, as JSON."""
    words = {"title": title, "sentence": sentence, "path": path}
    return {"event": str(event), "execution": execution_id, "kind": kind, **words, "at": at.isoformat()}


def what_of(payload: Payload) -> str:
    """Return what has happened, in one line without a full stop."""
    return _one_line(_WHAT.get(str(payload["event"]), "{title}").replace("{title}", str(payload["title"])))


def next_of(payload: Payload) -> str:
    return _NEXT.get(str(payload["event"]), _("Its page says more:"))


def subject(payloads: Sequence[Payload]) -> str:
    count = len(payloads)
    words = f"Compute Grid: {what_of(payloads[0]) if count == 1 else plural(count, 'notification', 'notifications')}"
    return words if len(words) <= _SUBJECT_LENGTH else f"{words[: _SUBJECT_LENGTH - 1]}…"


def mail_text(payloads: Sequence[Payload], origin: str) -> str:
    """Return the text of the mail that tells all of these; `origin` is how people reach the dashboard."""
    parts = []
    for payload in payloads:
        lines = (f"{what_of(payload)}.", str(payload["sentence"]), f"{next_of(payload)}\n{origin}{payload['path']}")
        parts.append("\n\n".join(line for line in lines if line))
    choose = _("Choose what you are told, and where: {address}", address=f"{origin}/account/#notifications")
    parts.append(f"-- \n{choose}")  # what readers of mail take for a signature
    return "\n\n\n".join(parts) + "\n"


def webhook_body(payload: Payload, message: UUID, origin: str) -> bytes:
    """Return the JSON that is posted. `delivery` is the same when it is repeated; `text` is all of it, for chats that show that field."""
    url, what, why = f"{origin}{payload['path']}", what_of(payload), str(payload["sentence"])
    body = {
        "delivery": str(message),
        "what": what,
        "why": why,
        "next": next_of(payload),
        "url": url,
        **{name: payload[name] for name in ("event", "title", "kind", "execution", "at")},
        "text": "\n".join(part for part in (f"{what}.", why, url) if part),
    }
    return json.dumps(body).encode()


def _one_line(text: str) -> str:
    """Return the text without line breaks, control characters and marks that turn the direction of what follows."""
    shown = (" " if unicodedata.category(char) in ("Cc", "Zl", "Zp", "Cs") else char for char in text)
    return " ".join("".join(char for char in shown if unicodedata.category(char) != "Cf").split())
