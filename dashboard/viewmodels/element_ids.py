"""Ids of elements, made from the names of things."""

import re

_NOT_ALLOWED = re.compile(r"[^A-Za-z0-9_.-]")


def element_id(kind: str, *names: str) -> str:
    """An id that is safe in HTML and in a selector, and different for different names: `node-worker-1`, `pod-default:2fweb`.

    Whatever is not a letter, digit, dot, dash or underscore is written as its code between colons.
    """
    return "-".join([kind, *(_NOT_ALLOWED.sub(lambda found: f":{ord(found[0]):x}:", name) for name in names)])
