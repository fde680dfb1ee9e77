"""What a page says to whoever reads it without a browser: its words, where its links lead, a cluster's workers, a pool's nodes."""

import html
import re
from html.parser import HTMLParser
from urllib.parse import urljoin

_TAG = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.DOTALL)
_READY = re.compile(r'class="cell cell-ready\b')
_NODE = re.compile(r'<th scope="row"><a href="/nodes/([^/"]+)/">')


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value for name, value in attrs if name in ("href", "src", "action") and value]


def words(page: str) -> str:
    """Its text in one line."""
    return " ".join(html.unescape(_TAG.sub(" ", page)).split())


def links(page: str, *, at: str) -> list[str]:
    """Whole addresses of all that it leads to and loads; `at` is its own address."""
    reader = _Links()
    reader.feed(page)
    return [urljoin(at, link) for link in reader.found]


def ready_workers(page: str) -> int:
    """Cells of a cluster's page that are ready."""
    return len(_READY.findall(page))


def nodes(page: str) -> list[str]:
    """Names in the table of the Infrastructure page."""
    return _NODE.findall(page)
