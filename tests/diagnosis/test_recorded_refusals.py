"""What is said of each refusal recorded from a real API server: read `tests/golden/words-of-recorded-refusals.txt`."""

import json
from collections.abc import Iterator

from grid.diagnosis.refusals import explain_refusal
from tests.diagnosis.recorded_timelines import FOLDER
from tests.support.golden import assert_golden


def refused(*codes: int, verb: str = "") -> Iterator[tuple[str, str]]:
    """Yield the name of each recorded request (of that verb, when given) with such an answer, and the message."""
    for line in (FOLDER / "api" / "exchanges.jsonl").read_text().splitlines():
        exchange = json.loads(line)
        body = exchange["response"].get("body")
        if verb in ("", exchange["request"]["method"]) and isinstance(body, dict) and body.get("code") in codes:
            yield exchange["name"], body.get("message", "")


def answer(name: str, message: str) -> str:
    reason = explain_refusal(message)
    words = f"{reason.code}: {reason.sentence} {reason.next_step}" if reason else "(shown as it is)"
    return f"# {name}\n> {message}\n{words}"


def test_forbidden_answers_are_explained_as_stored() -> None:
    blocks = [answer(name, message) for name, message in refused(403)]
    assert len(blocks) == 30
    assert_golden("words-of-recorded-refusals", "\n".join(blocks), ending="txt")


def test_answers_to_invalid_objects_are_explained_as_stored() -> None:
    blocks = [answer(name, message) for name, message in refused(400, 404, 413, 422, 429, 500, verb="POST")]
    assert len(blocks) > 50
    assert_golden("words-of-recorded-invalid-objects", "\n".join(blocks), ending="txt")


def test_conflicts_and_expired_reads_are_no_refusal() -> None:
    others = [message for code in (409, 410) for _, message in refused(code)]
    assert len(others) > 5
    assert [message for message in others if explain_refusal(message)] == []
