"""What a page says to whoever reads it without a browser: its words, a pool's nodes."""

import html
import re

_TAG = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.DOTALL)
_NODE = re.compile(r'<th scope="row"><a href="/nodes/([^/"]+)/">')


def words(page: str) -> str:
    """Its text in one line."""
    return " ".join(html.unescape(_TAG.sub(" ", page)).split())


def nodes(page: str) -> list[str]:
    """Names in the table of the Infrastructure page."""
    return _NODE.findall(page)
