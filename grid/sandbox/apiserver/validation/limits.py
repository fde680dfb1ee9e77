"""Validation of LimitRanges: their numbers must agree with each other."""

from grid.core.quantity import parse_quantity
from grid.sandbox.apiserver.kinds import Object
from grid.sandbox.apiserver.status import StatusCause, duplicate, prohibited, required, wrong

# Of each pair the first may not be more than the second: field and words of each, and which of the two is said to be wrong.
_PAIRS = (
    ("min", "min", "max", "max", "min"),
    ("min", "min", "defaultRequest", "default request", "defaultRequest"),
    ("defaultRequest", "default request", "max", "max", "defaultRequest"),
    ("defaultRequest", "default request", "default", "default limit", "defaultRequest"),
    ("min", "min", "default", "default", "min"),
    ("default", "default", "max", "max", "default"),
)
_NEITHER = "either minimum or maximum storage value is required, but neither was provided"


def check_limit_range(limit_range: Object) -> list[StatusCause]:
    causes: list[StatusCause] = []
    seen: set[str] = set()
    for index, limit in enumerate((limit_range.get("spec") or {}).get("limits") or ()):
        path, kind = f"spec.limits[{index}]", limit.get("type", "")
        if kind in seen:
            causes.append(duplicate(f"{path}.type", kind))
        seen.add(kind)
        if kind == "Pod":
            rule = "may not be specified when `type` is 'Pod'"
            causes += [
                prohibited(f"{path}.{field}", rule) for field in ("default", "defaultRequest") if limit.get(field)
            ]
        if kind == "PersistentVolumeClaim" and not any(
            "storage" in (limit.get(field) or {}) for field in ("min", "max")
        ):
            causes.append(required(f"{path}.limits", _NEITHER))
        causes += _disagreements(limit, path)
    return causes


def _disagreements(limit: Object, path: str) -> list[StatusCause]:
    causes: list[StatusCause] = []
    fields = ("min", "max", "default", "defaultRequest", "maxLimitRequestRatio")
    for name in sorted({key for field in fields for key in limit.get(field) or ()}):
        amounts = {field: limit[field][name] for field in fields if name in (limit.get(field) or {})}
        for low, low_word, high, high_word, blamed in _PAIRS:
            if low in amounts and high in amounts and parse_quantity(amounts[low]) > parse_quantity(amounts[high]):
                problem = f"{low_word} value {amounts[low]} is greater than {high_word} value {amounts[high]}"
                causes.append(wrong(f"{path}.{blamed}[{name}]", amounts[blamed], problem))
        ratio = amounts.get("maxLimitRequestRatio")
        if ratio is not None and parse_quantity(ratio) < 1:
            causes.append(wrong(f"{path}.maxLimitRequestRatio[{name}]", ratio, f"ratio {ratio} is less than 1"))
        if ratio is not None and "min" in amounts and "max" in amounts and parse_quantity(amounts["min"]) > 0:
            widest = parse_quantity(amounts["max"]) / parse_quantity(amounts["min"])
            if parse_quantity(ratio) > widest:
                problem = f"ratio {ratio} is greater than max/min = {widest:f}"
                causes.append(wrong(f"{path}.maxLimitRequestRatio[{name}]", ratio, problem))
    return causes
