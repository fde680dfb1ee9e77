"""Pages agree: while every failure of the demonstration happens, each second the list, the page, home, the queue and the overview are
read, and what they say of the same execution is compared; and in the end the chart of what waited, minute by minute.

GRID_AGREEMENT_SECONDS=600 has it watch for ten minutes; in CI it is the time that each failure needs to be seen.
"""

import html
import itertools
import logging
import os
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from dashboard.demonstration.views import FAILURES
from grid.configuration import MAXIMUM_EXECUTIONS_PER_USER
from tests.end_to_end.grid import Grid, Session, words
from tests.end_to_end.test_failures import IMAGE, TIER

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

SECONDS = float(os.environ.get("GRID_AGREEMENT_SECONDS", "100"))
PROGRAMS = {
    "runs": (IMAGE, "import time; time.sleep(20)"),
    "fails": (IMAGE, "import time; time.sleep(6); raise SystemExit(3)"),
    "no-image": ("nowhere/nothing:9", "pass"),
}
JOB = {"kind": "job", "project": "churn", "tier": "least"}
AT_ONCE = 5  # of which the last wait for a slot
SLOTS = 3
FEWEST_COUNTS = 10  # of a minute, to say what may be shown of it
SAMPLED_WITHIN = timedelta(seconds=10)
COUNTED = ("Queued", "Deploying", "Preparing")
ENDED = ("Succeeded", "Stopped", "Failed", "Error")
_ROW = re.compile(r'<tr id="row-[^"]*" class="row-.*?</tr>', re.DOTALL)
_CARD = re.compile(r'<li class="card[^"]*">.*?</li>', re.DOTALL)
_LINK = re.compile(r'href="/executions/(\w+)/"')
_STATUS = re.compile(r'<(?:strong|span) class="status [^"]*"[^>]*>([^<]+)</')
_ROW_NOTE = re.compile(r'<span class="why-note">(.*?)</span>', re.DOTALL)
_CARD_NOTE = re.compile(r'<span class="status-note break">(.*?)<span class="advice">', re.DOTALL)
_HEAD_NOTE = re.compile(r'</strong>.*?</p>\s*<p class="break">(.*?)</p>', re.DOTALL)
_COUNT = re.compile(r"<dt>([^<]+)</dt>\s*<dd>\s*<a[^>]*>\s*([\d,]+)")
_NOW = re.compile(r"^# Now: (\w+)[:.]?", re.MULTILINE)
_CHARTED = re.compile(r'<time datetime="([^"]+)">.*?(?:<td.*?){5}<td class="num">(\d+)</td>', re.DOTALL)
_LINE = re.compile(rf"^\S+Z +\w+ +({'|'.join(ENDED)}): ", re.MULTILINE)
_PASSING = re.compile(r"\d+ ?(?:milliseconds|seconds?|minutes?|min|ms|s|%)\b(?: \d+ ?(?:seconds?|s)\b)?")


@dataclass(frozen=True)
class Statement:
    """What a page says of an execution: the word of its state, and the sentence, without numbers that time moves."""

    word: str
    note: str = ""


@dataclass
class Watch:
    """Reads the pages round after round. Pages are read one after the other, so only what the list says before and after the others,
    twice in a row, is compared: `disagreements` are what was said otherwise in both rounds."""

    owner: Session
    operator: Session
    rounds: int = 0
    compared: Counter[str] = field(default_factory=Counter)
    disagreements: list[str] = field(default_factory=list)
    doubts: set[str] = field(default_factory=set)
    seen: dict[str, str] = field(default_factory=dict)  # the last word of each execution's page
    caused: list[str] = field(default_factory=list)
    waiting: list[tuple[datetime, int]] = field(default_factory=list)  # how many the list had, and when

    def compare(self, ids: list[str]) -> None:
        """Read everything about these executions once, and compare."""
        before = listed(self.owner.get("/executions/"))
        pages = {id: of_page(self.owner.get(f"/executions/{id}/")) for id in ids}
        self.seen |= {id: page.word for id, page in pages.items()}
        saved = {id: of_download(self.owner.get(f"/executions/{id}/lifecycle/")) for id in ids}
        home, queued = cards(self.owner.get("/")), _LINK.findall(self.operator.get("/queue/"))
        counts = overview(self.operator.get("/overview/"))
        rows = {word: self._filtered(word) for word in COUNTED}
        same = overview(self.operator.get("/overview/"))
        after = listed(self.owner.get("/executions/"))
        self.waiting.append((datetime.now(UTC), sum(row.word in COUNTED for row in after.values())))
        differences = set(self._between(ids, before, after, pages, saved, home, queued))
        for word in COUNTED:
            self.compared["overview"] += 1
            if counts.get(word) == same.get(word) != rows[word]:
                differences.add(f"the overview counts {counts.get(word)} as {word}, the list has {rows[word]}")
        self.disagreements += sorted(differences & self.doubts)
        self.doubts, self.rounds = differences, self.rounds + 1

    def compare_chart(self) -> None:
        """Compare each minute of the chart of waiting executions with what the list had within that minute."""
        for minute, shown in charted(self.operator.get("/infrastructure/history/?range=1h&part=rows")):
            until = minute + timedelta(minutes=1) + SAMPLED_WITHIN
            counts = [count for at, count in self.waiting if minute - SAMPLED_WITHIN <= at <= until]
            if len(counts) >= FEWEST_COUNTS:
                self.compared["chart"] += 1
                if not min(counts) <= shown <= max(counts):
                    self.disagreements.append(f"the chart has {shown} waiting at {minute}, the list had {counts}")

    def _filtered(self, word: str) -> int:
        return len(_ROW.findall(self.operator.get(f"/executions/?status={word.lower()}")))

    def _between(
        self,
        ids: list[str],
        before: Mapping[str, Statement],
        after: Mapping[str, Statement],
        pages: Mapping[str, Statement],
        saved: Mapping[str, Statement],
        home: Mapping[str, Statement],
        queued: list[str],
    ) -> Iterator[str]:
        for id in ids:
            row = before.get(id)
            if row != after.get(id):
                continue
            for place, words_there in (("page", pages[id]), ("download", saved[id]), ("home", home.get(id))):
                if words_there is None:
                    continue
                self.compared[place] += 1
                if row is None and words_there.word not in ENDED:
                    yield f"{id}: gone from the list, but the {place} says {words_there}"
                elif row is not None and not agree(row, words_there):
                    yield f"{id}: the list says {row}, the {place} says {words_there}"
            self.compared["queue"] += 1
            if row is not None and (row.word == "Queued") != (id in queued):
                yield f"{id}: the list says {row.word}, and the queue {'has' if id in queued else 'lacks'} it"


def listed(page: str) -> dict[str, Statement]:
    rows = ((_LINK.search(row), _STATUS.search(row), _ROW_NOTE.search(row)) for row in _ROW.findall(page))
    return {link[1]: statement(word[1], note[1] if note else "") for link, word, note in rows if link and word}


def cards(page: str) -> dict[str, Statement]:
    parts = ((_LINK.search(card), _STATUS.search(card), _CARD_NOTE.search(card)) for card in _CARD.findall(page))
    return {link[1]: statement(word[1], note[1] if note else "") for link, word, note in parts if link and word}


def of_page(page: str) -> Statement:
    head = page[page.index('class="execution-head"') :]
    word, note = _STATUS.search(head), _HEAD_NOTE.search(head)
    assert word, head[:2000]
    return statement(word[1], note[1] if note else "")


def of_download(text: str) -> Statement:
    """Return what it is now, or the last state of one that has ended."""
    word = [*_NOW.findall(text)[:1], *_LINE.findall(text)[-1:]]  # what follows is about its start
    assert word, text
    return Statement(word[0])


def charted(rows: str) -> list[tuple[datetime, int]]:
    """Return the minutes of the chart's table and how many executions waited then."""
    return [(datetime.fromisoformat(at), int(count)) for at, count in _CHARTED.findall(rows)]


def overview(page: str) -> dict[str, int]:
    return {word: int(count.replace(",", "")) for word, count in _COUNT.findall(page)}


def agree(row: Statement, other: Statement) -> bool:
    """Return whether both say the same state, and the same reason where both have room for it; the list also has the expected wait."""
    return row.word == other.word and (
        not other.note or not row.note or other.note in row.note or row.note in other.note
    )


def statement(word: str, note: str) -> Statement:
    return Statement(html.unescape(word), _PASSING.sub("#", words(note)))


def test_pages_agree_on_executions_while_everything_fails(grid: Grid) -> None:
    grid.population = ("--nodes", "4", "--pods", "60")
    grid.start()
    admin, owner = Session(grid, "admin"), Session(grid, "scientist")
    furnish(admin)
    watch, ids = Watch(owner, Session(grid, "operator")), list[str]()
    begin, causes = time.monotonic(), iter(failures(admin))
    while (passed := time.monotonic() - begin) < SECONDS:
        due = begin + passed + 1
        if passed >= len(watch.caused) * SECONDS / (len(FAILURES) + 1):
            watch.caused.append(next(causes))
        if len(active := [id for id in ids if watch.seen.get(id) not in ENDED]) < AT_ONCE:
            program = list(PROGRAMS)[len(ids) % len(PROGRAMS)]
            ids.append(owner.launch({**JOB, "title": f"{program}-{len(ids)}", "environment": program}))
        watch.compare([*active, *ids[-1:], *[id for id in ids if id not in active][-2:]])
        time.sleep(max(0.0, due - time.monotonic()))
    watch.compare_chart()
    logging.info("rounds=%s executions=%s compared=%s", watch.rounds, len(ids), dict(watch.compared))
    assert watch.disagreements == []
    assert set(watch.seen.values()) >= {"Succeeded", "Failed", "Queued"}, watch.seen
    assert len(watch.caused) >= len(FAILURES)
    assert watch.compared["chart"], watch.waiting


def failures(admin: Session) -> Iterator[str]:
    """Press the demonstration's buttons one after the other, for ever."""
    for failure in itertools.cycle(FAILURES):
        page = admin.get("/demonstration/")
        pool = re.search(r'<select name="pool".*?<option value="([^"]+)"', page, re.DOTALL)
        choice = {"pool": pool[1] if pool else "", "seconds": "5"}
        admin.post("/demonstration/failure/", {"failure": failure.name, **choice}, page="/demonstration/")
        yield failure.name


def furnish(admin: Session) -> None:
    """Make a small tier, environments whose program runs, fails and cannot be pulled, and few slots."""
    admin.post("/tiers/new/", {**TIER, "id": "least", "name": "Least"}, page="/tiers/new/")
    for name, (image, code) in PROGRAMS.items():
        entries = {"id": name, "name": name, "kind": "job", "image": image, "is_visible": "on"}
        admin.post("/environments/new/", {**entries, "command": f"python3\n-c\n{code}"}, page="/environments/new/")
    admin.configure(MAXIMUM_EXECUTIONS_PER_USER.key, str(SLOTS))
