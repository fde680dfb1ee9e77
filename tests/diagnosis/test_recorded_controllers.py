"""What a timeline says of the events of Kubernetes' controllers: read `tests/golden/words-of-recorded-controllers.txt`."""

from grid.diagnosis.refusals import explain_refusal
from tests.diagnosis.recorded_timelines import Entry, alike, event_of, item_words, recordings
from tests.support.golden import assert_golden

# StatefulSets are recorded, but nothing here makes any: their recordings are not in tests/recordings.
COUNT = 20


def messages(recording: Entry) -> dict[tuple[str, str], Entry]:
    """Return the events of the recording, each kind of message once, in their order."""
    by_reason: dict[tuple[str, str], Entry] = {}
    for entry in recording["timeline"]:
        if entry["kind"] == "event":
            kind = entry["object"].split("/")[0]
            by_reason.setdefault((f"{kind} {entry['reason']}", alike(entry["message"])), entry)
    return by_reason


def answer(recording: Entry, entry: Entry) -> str:
    lines = [f"> {entry['object'].split('/')[0]} {entry['reason']}: {entry['message']}"]
    lines.append(item_words(event_of(recording, entry)))
    refusal = explain_refusal(entry["message"]) if entry["eventType"] == "Warning" else None
    if refusal is not None:
        lines.append(f"{refusal.code}: {refusal.sentence} {refusal.next_step}")
    return "\n".join(lines)


def test_events_of_recorded_controllers_are_told_as_stored() -> None:
    seen: set[tuple[str, str]] = set()
    blocks, count = [], 0
    for name, recording in recordings("controllers"):
        new = {key: entry for key, entry in messages(recording).items() if key not in seen}
        seen |= new.keys()
        count += 1
        words = [answer(recording, entry) for entry in new.values()] or ["(nothing that is not above)"]
        blocks += [f"# {name}: {recording['what']}", *words]
    assert count == COUNT
    assert_golden("words-of-recorded-controllers", "\n".join(blocks), ending="txt")


def test_conditions_of_recorded_controllers_are_those_that_are_known() -> None:
    """Nothing is told of conditions but of the refusals in them: `ReplicaFailure` has the message of the event."""
    for name, recording in recordings("controllers"):
        for entry in recording["timeline"]:
            status = entry.get("status") or {}
            for each in status.get("conditions", ()) if isinstance(status, dict) else ():
                refusal = explain_refusal(each.get("message", ""))
                assert (refusal is not None) == (each["type"] == "ReplicaFailure"), (name, each)
