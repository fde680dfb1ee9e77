"""Ids of HTML elements, made from the names of objects."""

import string

_ALLOWED = frozenset(f"{string.ascii_letters}{string.digits}_.-")


def element_id(kind: str, *names: str) -> str:
    """Return the kind and names joined by dashes, as an id that is safe in HTML and in a selector: `node-worker-1`.

    Any character but letters, digits, dots, dashes and underscores is written as its code between colons, `a/b` as `a:2f:b`, so that
    two names never become the same text.
    """
    return "-".join([kind, *map(_escaped, names)])


def namespaced(namespace: str, name: str) -> str:
    """Return one text for an object of a namespace. A namespace's name has no dot, so two objects never have the same."""
    return f"{namespace}.{name}"


def _escaped(name: str) -> str:
    if _ALLOWED.issuperset(name):
        return name
    return "".join(character if character in _ALLOWED else f":{ord(character):x}:" for character in name)
