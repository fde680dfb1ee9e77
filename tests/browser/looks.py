"""What a person would find wrong with a page at the first look, found by measuring it as the browser shows it."""

from typing import cast

from playwright.sync_api import Page

LEAST_TEXT = 12.0  # px

_SCRIPT = """() => {
  const found = new Set();
  const beyond = document.documentElement.scrollWidth - innerWidth;
  if (beyond > 0) found.add(`wider than the window by ${beyond} px`);
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement, text = node.textContent;
    if (!text.trim() || element.closest("script, style, option, noscript, .visually-hidden")) continue;
    if (!element.checkVisibility({visibilityProperty: true})) continue;
    const style = getComputedStyle(element);
    if (parseFloat(style.fontSize) && parseFloat(style.fontSize) < LEAST) found.add(`${style.fontSize}: ${text.trim().slice(0, 40)}`);
    if (element.closest("pre, code, .mono, .log")) continue;
    for (const word of text.matchAll(/[\\p{L}\\p{N}]+/gu)) {
      const range = document.createRange();
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const lines = new Set([...range.getClientRects()].filter((one) => one.width > 0).map((one) => Math.round(one.top)));
      if (lines.size > 1) found.add(`broken inside a word: ${word[0].slice(0, 60)}`);
    }
  }
  return [...found];
}"""


def faults(page: Page) -> list[str]:
    """Return sentences: the page is wider than the window, a text is smaller than `LEAST_TEXT`, a word is broken inside."""
    return cast(list[str], page.evaluate(_SCRIPT.replace("LEAST)", f"{LEAST_TEXT})")))
