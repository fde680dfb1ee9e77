"""What a person would find wrong with a page at the first look, measured and by axe; what live pages are asked; tabbing about."""

import os
import re
from pathlib import Path
from typing import Any, Literal, cast

from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Locator, Page, expect

LEAST_TEXT = 12.0  # px
LONGEST_WORD = 30  # letters; a longer one is none of a language, and has to be broken somewhere
MOST_SHIFT = 0.05  # of the window's area times the way moved, added up; the Web Vitals call up to 0.1 good
LINE, THREE_LINES = 44, 96  # px that a row has at most, on wide screens and on a phone
ROWS = ((1440, LINE), (1024, LINE), (390, THREE_LINES))  # the width of the window, and the most that a row has there
# The screens, by width and colour scheme.
WIDE: tuple[int, Literal["light", "dark"]] = (1440, "light")
PHONE: tuple[int, Literal["light", "dark"]] = (390, "dark")
_FAULTS = """([LEAST, LONGEST]) => {
  const found = new Set();
  const beyond = document.documentElement.scrollWidth - innerWidth;
  if (beyond > 0) found.add(`wider than the window by ${beyond} px`);
  for (const chart of document.querySelectorAll(".chart")) {
    const more = chart.offsetHeight - Math.ceil(parseFloat(getComputedStyle(chart).minHeight));
    if (more > 0) found.add(`the chart ${chart.dataset.title} takes ${more} px more than the room that was kept for it`);
  }
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement, text = node.textContent;
    if (!text.trim() || element.closest("script, style, option, noscript, .visually-hidden")) continue;
    if (!element.checkVisibility({visibilityProperty: true})) continue;
    const style = getComputedStyle(element);
    if (parseFloat(style.fontSize) && parseFloat(style.fontSize) < LEAST) found.add(`${style.fontSize}: ${text.trim().slice(0, 40)}`);
    if (element.closest("pre, code, .mono, .log")) continue;
    for (const word of text.matchAll(/[\\p{L}\\p{N}]+/gu)) {
      if (word[0].length > LONGEST || /\\p{Script=Han}/u.test(word[0])) continue;  // Chinese may break after any character
      const range = document.createRange();
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const lines = new Set([...range.getClientRects()].filter((one) => one.width > 0).map((one) => Math.round(one.top)));
      if (lines.size > 1) found.add(`broken inside a word: ${word[0].slice(0, 60)}`);
    }
  }
  return [...found];
}"""
# When somebody typed or clicked on the page: what is answered may move things. The browser's own `hadRecentInput` does not know of fields
# that a test fills in, and ends after half a second, in which a busy machine has not answered.
ACTS = """for (const kind of ["input", "change", "click", "keydown"])
  addEventListener(kind, () => (window.acts ??= []).push(performance.now()), true);"""
PATIENCE = 3000.0  # ms in which what somebody did may move things
# What moved by itself since the page was loaded or looked at before.
_SHIFTS = """(PATIENCE) => new Promise((done) => {
  const isAnswer = (at) => (window.acts || []).some((acted) => acted <= at && at < acted + PATIENCE);
  new PerformanceObserver((list, observer) => {
    observer.disconnect();
    const since = list.getEntries().filter((one) => one.startTime > (window.lookedAt || 0));
    const shifts = since.filter((one) => !one.hadRecentInput && !isAnswer(one.startTime));
    const moved = shifts.flatMap((one) => one.sources.map(({node}) => (node?.outerHTML || node?.textContent || "?").trim().slice(0, 80)));
    done([shifts.reduce((sum, one) => sum + one.value, 0), [...new Set(moved)]]);
  }).observe({type: "layout-shift", buffered: true});
  setTimeout(() => done([0, []]), 50);  // nothing is told when there is nothing
})"""
# The frames of a new screen are drawn, and what has moved until then is forgotten.
_DRAWN = """() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))
  .then(() => { window.lookedAt = performance.now(); })"""
_SCRIPT = cast(str, Axe().axe_script)
# Nothing is fetched again for it, because only rules about sound and about turning a phone would read that; and only what is broken
# comes back. Both save a third of the time.
_RUN = "part => axe.run(part, {resultTypes: ['violations'], preload: false}).then((results) => results.violations)"


def look_at(page: Page, name: str, *, part: str = "html", opened: bool = False) -> None:
    """Fail when the page as it stands has a fault to the eye or for axe, which looks at the part that a selector names.

    With `opened`, everything is looked at open that can be opened.
    """
    problems = wrong_with(page, name, part=part, opened=opened)
    assert not problems, "\n".join(problems)


def wrong_with(page: Page, name: str, *, part: str = "html", opened: bool = False) -> list[str]:
    """Return what `look_at` would fail for. A picture is kept in the folder that GRID_SCREENSHOTS names."""
    expect(page.locator("h1").first).to_be_visible()
    moved = shifts(page)
    if opened:
        page.evaluate("for (const one of document.querySelectorAll('main details')) one.open = true")
    if folder := os.environ.get("GRID_SCREENSHOTS"):
        width, dark = page.evaluate("[innerWidth, matchMedia('(prefers-color-scheme: dark)').matches]")
        page.screenshot(path=Path(folder) / f"{name}-{width}-{'dark' if dark else 'light'}.png", full_page=True)
    problems = [f"{name}: {each}" for each in (*moved, *faults(page), *violations(page, part))]
    page.evaluate("window.lookedAt = performance.now()")
    return problems


def look_on_screens(page: Page, name: str, *, part: str = "html", opened: bool = False) -> None:
    """As `look_at`, on the wide light screen and on the dark phone, of one load of the page."""
    problems = wrong_on_screens(page, name, part=part, opened=opened)
    assert not problems, "\n".join(problems)


def wrong_on_screens(page: Page, name: str, *, part: str = "html", opened: bool = False) -> list[str]:
    """Return what `look_on_screens` would fail for. Only on the screen on which it was loaded may it not have moved."""
    is_wide = page.evaluate("innerWidth") == WIDE[0]
    problems = wrong_with(page, name, part=part, opened=opened)
    show_on(page, *(PHONE if is_wide else WIDE))
    problems += wrong_with(page, name, part=part)
    show_on(page, *(WIDE if is_wide else PHONE))
    return problems


def show_on(page: Page, width: int, scheme: Literal["light", "dark"]) -> None:
    """Show the page as it stands on another screen; what that moves is no fault."""
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    page.wait_for_function("[...document.querySelectorAll('canvas')].every((one) => one.clientWidth <= innerWidth)")
    page.evaluate(_DRAWN)


def highest_row(page: Page) -> float:
    """Return the height in px of the highest row of the page's tables that have one line a row, and on a phone three."""
    heights = page.locator("main table.table-lines tbody tr:has(th)").evaluate_all(
        "rows => rows.map((row) => row.getBoundingClientRect().height)"
    )
    assert len(heights) > 1, "there are rows"
    return float(max(heights))


def faults(page: Page) -> list[str]:
    """Return sentences: the page is wider than the window, a text is smaller than `LEAST_TEXT`, a word is broken inside,
    a chart pushes down what is below it when its values come."""
    return cast(list[str], page.evaluate(_FAULTS, [LEAST_TEXT, LONGEST_WORD]))


def shifts(page: Page) -> list[str]:
    """Return a sentence when what was shown has moved by more than `MOST_SHIFT` since the page was loaded, or looked at before."""
    value, moved = page.evaluate(_SHIFTS, PATIENCE)
    return [f"moved by {value:.3f}: {moved[:5]}"] if value > MOST_SHIFT else []


def follow(page: Page) -> None:
    """Wait until the page is live, and leave a mark that a reload would take away. A page must be live before it is left, too: Chromium
    complains in its console when a websocket that still connects is closed."""
    expect(page.locator("#freshness")).to_have_class(re.compile("freshness-live"))
    page.evaluate("document.body.dataset.loaded = 'once'")


def not_reloaded(page: Page) -> None:
    assert page.evaluate("document.body.dataset.loaded") == "once"


def tab_to(page: Page, target: Locator) -> None:
    for _ in range(80):
        page.keyboard.press("Tab")
        if target.evaluate("element => element === document.activeElement"):
            return
    raise AssertionError(f"the Tab key does not reach {target}")


def violations(page: Page, part: str = "html") -> list[str]:
    """Return the rules that are broken in the part of the page that a selector names, each with the first three elements that break it.

    On a page that is live a row may be replaced while axe reads its colours, so what it finds has to be there a moment later, too.
    """
    if not page.evaluate("'axe' in window"):
        page.evaluate(_SCRIPT)
    if not page.evaluate(_RUN, part):
        return []
    page.wait_for_timeout(500)
    results: list[dict[str, Any]] = page.evaluate(_RUN, part)
    return [f"{violation['id']}: {[node['html'] for node in violation['nodes']][:3]}" for violation in results]
