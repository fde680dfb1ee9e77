"""Lines of logs: colours from hostile text, levels, cutting of streams, places in a log, rows, and the stored HTML of a log."""

import pickle
import re
from html import unescape

import pytest
from django.template.loader import render_to_string
from hypothesis import given, strategies as st

from dashboard.logs.viewmodels.ansi import ansi_html, last_state, plain
from dashboard.logs.viewmodels.log import LogQuery, LogSource, LogView
from dashboard.logs.viewmodels.log_lines import (
    LONGEST_ROW,
    PAGE_BYTES,
    LogPosition,
    PodLines,
    cursor_before,
    cursor_text,
    kept_page,
    merged,
    newest,
    parse_cursor,
    place_before,
    rows_of,
)
from grid.diagnosis.loglevels import level_of
from tests.support.golden import assert_golden

TAG = re.compile(r'<span class="(?:ansi-(?:\d|1[0-5])(?: ansi-bold)?|ansi-bold)">|</span>')
SEQUENCES = ("\x1b[31m", "\x1b[0m", "\x1b[1;92m", "\x1b[48;2;1;2;3m", "\x1b[2K", "\x1b]0;title\x07", "\x1b", "\x9b3")
hostile = st.lists(st.sampled_from((*SEQUENCES, "<b>", '"><script>', "&amp;", "\r", "\x00", "\u202e")) | st.text()).map(
    "".join
)


@given(hostile)
def test_text_becomes_known_spans_and_escaped_text(text: str) -> None:
    html = ansi_html(text)
    rest = TAG.sub("", html)
    assert "<" not in rest
    assert ">" not in rest
    assert not re.search(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u202e]", html)
    assert html.count("<span") == html.count("</span>")
    assert unescape(rest) == plain(text)


@given(st.text(st.characters(blacklist_categories=("Cc", "Cf", "Cs", "Zl", "Zp"))))
def test_text_without_sequences_is_preserved(text: str) -> None:
    assert unescape(ansi_html(text)) == plain(text) == text


COLOURED = ["\x1b[1;92mbright\x1b[22m\x1b[39m", "\x1b[38;5;9mnine\x1b[38;5;196m far", "\x1b[38;2;1;31;3mtrue colour"]
DROPPED = ["\x1b[48;5;4;32mon blue", "\x1b[mreset", "\x1b]8;;https://a.example\x1b\\link\x1b]8;;\x1b\\"]


def test_colours_become_classes_and_other_sequences_are_dropped() -> None:
    texts = [*COLOURED, *DROPPED, "\x1b[99999999999999m<", "\x1b]0;never closed"]
    assert_golden("log-colours", "\n".join(f"{text!r}: {ansi_html(text)}" for text in texts), ending="txt")


def test_a_progress_bar_is_shown_in_its_last_state() -> None:
    assert last_state(" 1%\r 50%\r100% done") == "100% done"
    assert last_state("100% done\r") == "100% done"
    assert last_state("\r\r") == ""


LINES = [
    "2026-11-23 09:00:05,123 - train - ERROR - loss is nan",
    "WARNING:root:low memory",
    "[W 2026-11-23 09:00:05.123 ServerApp] 404 GET /x",
    "26/11/23 09:00:05 INFO SparkContext: Running, 0 ERROR so far",
    "2026-11-23 09:00:05,123\tINFO worker.py:1743 -- Connected to Ray cluster.",
    "[2026-11-23 09:00:05,123 E 12 12] (raylet) main.cc:1: failed",
    "E1123 09:00:05.123456   12 controller.go:1] sync failed",
    '{"time":"now","level":"warn","msg":"ERROR is only a word"}',
    '{"level":50,"msg":"pino"}',
    "ts=1 level=debug msg=x",
    "Traceback (most recent call last):",
    "torch.cuda.OutOfMemoryError: CUDA out of memory",
    "/a/b.py:3: DeprecationWarning: use c",
    "no information about errors",
]


def test_levels_are_those_of_common_loggers() -> None:
    assert_golden("log-levels", "\n".join(f"{level_of(line, 'info')} < {line}" for line in LINES), ending="txt")


def taken(*lines: str, size: int = 7, **options: object) -> PodLines:
    log = PodLines("", **options)  # type: ignore[arg-type]
    whole = "".join(f"{line}\n" for line in lines).encode()
    for start in range(0, len(whole), size):
        log.take(log.cut(whole[start : start + size]))
    return log


def numbered(count: int, per_moment: int = 1) -> list[str]:
    return [f"2026-03-04T09:{n // per_moment // 60:02}:{n // per_moment % 60:02}.5Z line {n}" for n in range(count)]


@given(st.integers(0, 60), st.integers(1, 9), st.integers(1, 12), st.integers(1, 40))
def test_pages_of_earlier_lines_are_the_whole_log(count: int, per_moment: int, keep: int, size: int) -> None:
    """Also where several lines have one timestamp."""
    shown: list[bytes] = []
    cursor: dict[str, LogPosition] = {}
    while True:
        log = taken(*numbered(count, per_moment), size=size, keep=keep, before=place_before(cursor, ""))
        lines = log.lines()
        shown = [text for _, _, text in lines] + shown
        if not lines:
            break
        cursor = cursor_before(lines, parse_cursor(cursor_text(cursor)))
    assert shown == [f"line {n}".encode() for n in range(count)]


def test_merged_lines_have_room_for_one_line_at_least() -> None:
    lines = [("", "", b"x" * size) for size in (10, PAGE_BYTES - 20, 20, PAGE_BYTES + 1)]
    assert newest(lines, 500) == lines[3:]
    assert newest(lines[:3], 500) == lines[1:3]
    assert newest(lines[:3], 1) == lines[2:3]
    assert newest([], 500) == []


def test_endless_line_takes_little_memory_and_progress_keeps_end() -> None:
    bar = PodLines("")
    bar.take(bar.cut(b"2026-03-04T09:00:00Z "))
    for percent in range(20_000):
        bar.take(bar.cut(b"\r%d steps" % percent))
        assert len(bar._rest) < 66_000
    [row] = rows_of(bar.lines())
    assert (row.stamp[11:19], row.html) == ("09:00:00", "19999 steps")
    [row] = rows_of(taken("<" * 300_000, size=50_000).lines())
    assert row.html == "&lt;" * LONGEST_ROW
    assert row.cut > 0


@pytest.mark.parametrize("size", [4096, 15_000, 65_536, 10**7])
@pytest.mark.parametrize(("letter", "end"), [("y", ""), ("ž", ""), ("€", "\r"), ("😀", "\r\r")])
def test_long_line_says_how_much_is_left_out(letter: str, end: str, size: int) -> None:
    """However it came in parts, of which some end within a character; then the rest of the log is as it was."""
    written = f"2026-03-04T09:00:00Z {letter * 400_000}{end}"
    log = taken(written, "2026-03-04T09:00:01Z next", size=size)
    long, following = rows_of(pickle.loads(pickle.dumps(log.lines())))
    assert (long.html, long.cut) == (letter * LONGEST_ROW, 400_000 - LONGEST_ROW)
    assert (following.html, following.cut) == ("next", 0)


def test_long_line_is_never_cut_inside_a_character() -> None:
    for before in range(4):
        [(_, _, text)] = taken("x" * before + "😀" * 50_000, size=10_000).lines()
        assert "�" not in text.decode(errors="replace")
    [(_, _, text)] = taken("x" * 100_000).lines()
    assert len(text) == 32 * 1024


@pytest.mark.parametrize("size", [1000, 100_000, 10**6])
def test_line_drawn_anew_forgets_what_was_cut(size: int) -> None:
    [row] = rows_of(taken(f"{'a' * 200_000}\r{'b' * 10}", size=size).lines())
    assert (row.html, row.cut) == ("b" * 10, 0)


def test_filter_keeps_lines_by_text_and_minimum_level() -> None:
    log = "INFO a\n\x1b[31mERROR\x1b[0m a\n  at b\nWARN A\nnothing"

    def kept(text: str, least: str) -> list[bytes]:
        return [line for _, _, line in kept_page(log, None, text, least)[0]]

    assert kept("", "error") == [b"\x1b[31mERROR\x1b[0m a", b"  at b"]
    assert kept("r a", "") == [b"\x1b[31mERROR\x1b[0m a"]
    assert len(kept("A", "warning")) == 3
    assert len(kept("", "")) == 5


def test_logs_become_one_in_the_order_of_time() -> None:
    head = PodLines("head")
    head.take(head.cut(b"2026-03-04T09:00:01Z one\n2026-03-04T09:00:03.5Z four\n"))
    worker = PodLines("abcde")
    worker.take(worker.cut(b"2026-03-04T09:00:02Z two\n  of two lines\n2026-03-04T09:00:03.25Z three"))
    rows = rows_of(merged([head.lines(), worker.lines()]))
    assert [(row.pod, row.stamp[11:19], row.html) for row in rows] == [
        ("head", "09:00:01", "one"),
        ("abcde", "09:00:02", "two"),
        ("abcde", "09:00:02", "  of two lines"),
        ("abcde", "09:00:03", "three"),
        ("head", "09:00:03", "four"),
    ]
    assert [row.day for row in rows] == ["2026-03-04", "", "", "", ""]
    assert len({row.tint for row in rows}) == 2


def test_a_cursor_that_nobody_made_is_none() -> None:
    cursor = {"head": LogPosition("2026-03-04T09:00:01.000000000", 3), "abcde": LogPosition("", 1)}
    assert parse_cursor(cursor_text(cursor)) == cursor
    for text in ("", "head~2026~1", f"{cursor_text(cursor)},<script>", "head~2026-03-04T09:00:01.000000000~x"):
        assert parse_cursor(text) == {}


def test_a_log_looks_as_it_is_stored() -> None:
    lines = [
        ("2026-03-03T23:59:59.900000000", "head", b"INFO: the scheduler is up"),
        ("2026-03-04T00:00:01.250000000", "abcde", b"\x1b[1;31mERROR\x1b[0m <b>no</b>"),
        ("2026-03-04T00:00:01.250000000", "abcde", b"  " + b"x" * 4100),
    ]
    source = LogSource("grid", "all", "run", True, ("all", "head-pod"), ("run",), is_live=True)
    view = LogView(
        "/page/",
        "/log/",
        LogQuery(q="o", level="error"),
        source,
        rows_of(lines),
        before=cursor_text(cursor_before(lines, {})),
        is_live=True,
    )
    assert_golden("log", render_to_string("logs/fragments/log.html", {"log": view}))
    nothing = LogView("/page/", "/log/", why_empty="Its program has not started yet.")
    assert_golden("log-none", render_to_string("logs/fragments/log.html", {"log": nothing}))
