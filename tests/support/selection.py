"""Label and field selectors as the API server understands them, for the fake cluster."""

import re
from collections.abc import Callable

from grid.kube.objects import RawObject

Matcher = Callable[[RawObject], bool]
_SET = re.compile(r"^\s*([^\s!=,()]+)\s+(in|notin)\s+\(([^)]*)\)\s*$")
_SPLIT = re.compile(r",(?![^(]*\))")


def matcher(label_selector: str = "", field_selector: str = "") -> Matcher:
    """True for objects that fit both selectors; raises ValueError with a sentence for one that cannot be read."""
    tests = [_label_test(part) for part in _parts(label_selector)] + [
        _field_test(part) for part in _parts(field_selector)
    ]
    return lambda obj: all(test(obj) for test in tests)


def _parts(selector: str) -> list[str]:
    return [part.strip() for part in _SPLIT.split(selector) if part.strip()]


def _labels(obj: RawObject) -> dict[str, str]:
    return obj.get("metadata", {}).get("labels") or {}


def _label_test(part: str) -> Matcher:
    found = _SET.match(part)
    if found:
        key, operator, listed = found.groups()
        values = {value.strip() for value in listed.split(",")}
        if operator == "in":
            return lambda obj: _labels(obj).get(key) in values
        return lambda obj: _labels(obj).get(key) not in values
    if "!=" in part:
        key, value = (side.strip() for side in part.split("!=", 1))
        return lambda obj: _labels(obj).get(key) != value
    if "=" in part:
        key, value = (side.strip() for side in re.split("==?", part, maxsplit=1))
        return lambda obj: _labels(obj).get(key) == value
    if part.startswith("!"):
        key = part[1:].strip()
        return lambda obj: key not in _labels(obj)
    if re.search(r"[\s()]", part):
        raise ValueError(f"unable to parse requirement: “{part}”")
    return lambda obj: part in _labels(obj)


def _field_test(part: str) -> Matcher:
    if "=" not in part:
        raise ValueError(f"invalid field selector: “{part}”")
    negated = "!=" in part
    path, wanted = re.split("!=|==?", part, maxsplit=1)

    def value(obj: RawObject) -> str:
        here: object = obj
        for step in path.strip().split("."):
            here = here.get(step, "") if isinstance(here, dict) else ""
        return str(here)

    return lambda obj: (value(obj) == wanted.strip()) is not negated
