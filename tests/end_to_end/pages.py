"""What a page says to whoever reads it without a browser: its words, a cluster's workers, a pool's nodes."""

import html
import re

_TAG = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.DOTALL)
_READY = re.compile(r'class="cell cell-ready\b')
_NODE = re.compile(r'<th scope="row"><a href="/nodes/([^/"]+)/">')


def words(page: str) -> str:
    """Its text in one line."""
    return " ".join(html.unescape(_TAG.sub(" ", page)).split())


def ready_workers(page: str) -> int:
    """Cells of a cluster's page that are ready."""
    return len(_READY.findall(page))


def nodes(page: str) -> list[str]:
    """Names in the table of the Infrastructure page."""
    return _NODE.findall(page)
