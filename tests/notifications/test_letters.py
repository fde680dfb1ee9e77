"""What an e-mail and a post say: what has happened, why, what next and where; hostile words stay words."""

import json
from typing import Any
from uuid import UUID

import pytest

from grid.models import NotificationEvent
from grid.notifications.letters import TEST, mail_text, subject, webhook_body, what_of

ORIGIN = "https://grid.example.com"


def payload(**changes: Any) -> dict[str, Any]:
    return {
        "event": "failed",
        "execution": "abc",
        "kind": "job",
        "title": "Train",
        "sentence": "It ended with exit code 1. Look at its log.",
        "path": "/executions/abc/",
        "at": "2026-03-04T09:00:00+00:00",
    } | changes


def test_a_mail_says_what_why_what_next_and_where() -> None:
    assert subject([payload()]) == "Compute Grid: Train has failed"
    assert mail_text([payload()], ORIGIN) == (
        "Train has failed.\n\n"
        "It ended with exit code 1. Look at its log.\n\n"
        "Its log and what led to it are on its page, where you can launch it again:\n"
        "https://grid.example.com/executions/abc/\n\n\n"
        "-- \nChoose what you are told, and where: https://grid.example.com/account/#notifications\n"
    )


@pytest.mark.parametrize("event", [*NotificationEvent.values, TEST, "of-a-later-version"])
def test_every_event_has_words(event: str) -> None:
    bare = payload(event=event, sentence="")
    assert what_of(bare)
    assert "\n\n\n\n" not in mail_text([bare], ORIGIN)
    assert json.loads(webhook_body(bare, UUID(int=1), ORIGIN))["event"] == event


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        ("a\r\nBcc: victim@example.com", "a Bcc: victim@example.com"),
        ("a\nb\x00c\x85d\u2028e\u2029f", "a b c d e f"),
        ("safe\u202egnp.exe\u2066", "safegnp.exe"),
        ("{title} {0}", "{title} {0}"),
        ("   ", ""),
    ],
)
def test_a_hostile_title_is_one_line_of_a_subject(title: str, shown: str) -> None:
    words = subject([payload(title=title)])
    assert words == " ".join(f"Compute Grid: {shown} has failed".split())
    assert words.isprintable()
