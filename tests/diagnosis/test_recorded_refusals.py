"""What is said of each refusal recorded from a real API server: read `tests/golden/words-of-recorded-refusals.txt`."""

import json
from collections.abc import Iterator

from grid.diagnosis.refusals import explain_refusal
from tests.diagnosis.recorded_timelines import FOLDER
from tests.support.golden import assert_golden


def refused(code: int) -> Iterator[tuple[str, str]]:
    """Yield the name of each recorded request with this answer, and the message."""
    for line in (FOLDER / "api" / "exchanges.jsonl").read_text().splitlines():
        exchange = json.loads(line)
        body = exchange["response"].get("body")
        if isinstance(body, dict) and body.get("kind") == "Status" and body.get("code") == code:
            yield exchange["name"], body["message"]


def answer(name: str, message: str) -> str:
    reason = explain_refusal(message)
    words = f"{reason.code}: {reason.sentence} {reason.next_step}" if reason else "(shown as it is)"
    return f"# {name}\n> {message}\n{words}"


def test_forbidden_answers_are_explained_as_stored() -> None:
    blocks = [answer(name, message) for name, message in refused(403)]
    assert len(blocks) == 30
    assert_golden("words-of-recorded-refusals", "\n".join(blocks), ending="txt")


def test_invalid_or_retried_answers_are_no_namespace_rule() -> None:
    others = [message for code in (400, 404, 409, 410, 422, 429) for _, message in refused(code)]
    assert len(others) > 100
    assert [message for message in others if explain_refusal(message)] == []
