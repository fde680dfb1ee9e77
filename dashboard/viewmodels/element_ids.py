"""Ids of HTML elements, made from the names of objects."""

from grid.regexes import RepeatedExpression

_NOT_ALLOWED = RepeatedExpression(r"[^A-Za-z0-9_.-]")


def element_id(kind: str, *names: str) -> str:
    """Return the kind and names joined by dashes, as an id that is safe in HTML and in a selector: `node-worker-1`.

    Any character but letters, digits, dots, dashes and underscores is written as its code between colons, `a/b` as `a:2f:b`, so that
    two names never become the same text.
    """
    return "-".join([kind, *(_NOT_ALLOWED.sub(lambda found: f":{ord(found[0]):x}:", name) for name in names)])


def namespaced(namespace: str, name: str) -> str:
    """Return one text for an object of a namespace. A namespace's name has no dot, so two objects never have the same."""
    return f"{namespace}.{name}"
