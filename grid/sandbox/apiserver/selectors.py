"""Label and field selectors: parsed once per request into predicates over an object's labels or fields.

Syntax and error sentences are Kubernetes'. Pure functions; a bad selector is a `Failure` with code 400.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from grid.core.regexes import Expression, RepeatedExpression
from grid.sandbox.apiserver.kinds import Object, ServedKind, dig
from grid.sandbox.apiserver.names import label_key_problems, label_value_problems
from grid.sandbox.apiserver.status import bad_request, shown

Predicate: TypeAlias = Callable[[Object], bool]
_WHOLE = Expression(r"-?\d+")
_FIELD = Expression(r"([^=!\s]+)(!=|==|=)(.*)")
_TOKEN = RepeatedExpression(r"\s*(==|!=|[=!<>(),]|[^\s=!<>(),]+)")
# What no requirement begins with.
_SYMBOLS = ("=", "==", "!=", "<", ">", "(", ")", ",")
_OPERATORS = "in, notin, =, ==, !=, gt, lt"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on a label."""

    key: str
    operator: str  # "=", "!=", "in", "notin", "exists", "!", ">", "<"
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        present = self.key in labels
        match self.operator:
            case "exists":
                return present
            case "!":
                return not present
            case "in" | "=":
                return present and labels[self.key] in self.values
            case "notin" | "!=":
                return not present or labels[self.key] not in self.values
            case _:
                return present and self._compares(labels[self.key])

    def _compares(self, text: str) -> bool:
        try:
            left, right = int(text), int(next(iter(self.values)))
        except ValueError:
            return False
        return left > right if self.operator == ">" else left < right


def parse_labels(text: str) -> tuple[Requirement, ...]:
    tokens = _tokens(text)
    if tokens and tokens[0] in _SYMBOLS:
        raise bad_request(f"found '{tokens[0]}', expected: !, identifier, or 'end of string'")
    requirements: list[Requirement] = []
    position = 0
    while position < len(tokens):
        requirement, position = _requirement(tokens, position)
        requirements.append(requirement)
        if position < len(tokens):
            if tokens[position] != ",":
                raise bad_request(f"found '{tokens[position]}', expected: ',' or 'end of string'")
            position += 1
            following = tokens[position] if position < len(tokens) else ""
            if not following or following in _SYMBOLS:
                raise bad_request(f"found '{following}', expected: identifier after ','")
    return tuple(requirements)


def _tokens(text: str) -> list[str]:
    return [match[1] for match in _TOKEN.finditer(text)]


def _unparsable(problem: str) -> Exception:
    return bad_request(f"unable to parse requirement: {problem}")


def _requirement(tokens: list[str], position: int) -> tuple[Requirement, int]:
    negated = tokens[position] == "!"
    position += negated
    key = tokens[position] if position < len(tokens) else ""
    if not key or key in "=!<>(),":
        raise _unparsable(f"found '{key}', expected: identifier")
    if problems := label_key_problems(key):
        raise _unparsable(f"key: Invalid value: {shown(key)}: {problems[0]}")
    position += 1
    operator = tokens[position] if position < len(tokens) else ","
    if negated:
        return Requirement(key, "!"), position
    if operator == ",":
        return Requirement(key, "exists"), position
    if operator in ("in", "notin"):
        values, position = _values(tokens, position + 1)
        return _checked(key, operator, values), position
    if operator in ("=", "==", "!=", ">", "<"):
        value = tokens[position + 1] if position + 1 < len(tokens) and tokens[position + 1] != "," else ""
        position += 2 if value else 1
        return _checked(key, "=" if operator == "==" else operator, [value]), position
    raise _unparsable(f"found '{operator}', expected: {_OPERATORS}")


def _values(tokens: list[str], position: int) -> tuple[list[str], int]:
    token = tokens[position] if position < len(tokens) else ""
    if token != "(":
        raise _unparsable(f"found '{token}' expected: '('")
    values: list[str] = []
    position += 1
    while position < len(tokens) and tokens[position] != ")":
        if tokens[position] != ",":
            values.append(tokens[position])
        position += 1
    if position == len(tokens):
        raise _unparsable("found '', expected: ',' or ')'")
    return values or [""], position + 1


def _checked(key: str, operator: str, values: list[str]) -> Requirement:
    for number, value in enumerate(values):
        if problems := label_value_problems(value):
            raise _unparsable(f"values[{number}][{key}]: Invalid value: {shown(value)}: {problems[0]}")
    if operator in "<>" and not _WHOLE.fullmatch(values[0]):
        raise _unparsable(
            f"values[0]: Invalid value: {shown(values[0])}: for 'Gt', 'Lt' operators, the value must be an integer"
        )
    return Requirement(key, operator, frozenset(values))


def label_predicate(text: str) -> Predicate | None:
    """Return a predicate over objects, or None when the selector is empty."""
    requirements = parse_labels(text)
    if not requirements:
        return None

    def matches(obj: Object) -> bool:
        labels = obj["metadata"].get("labels") or {}
        return all(requirement.matches(labels) for requirement in requirements)

    return matches


def selects(selector: Object | None, labels: Mapping[str, str] | None) -> bool:
    """Return True when a `LabelSelector` (matchLabels and matchExpressions) selects these labels; None selects nothing."""
    if selector is None:
        return False
    own = labels or {}
    if any(own.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    operators = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}
    return all(
        Requirement(rule["key"], operators[rule["operator"]], frozenset(rule.get("values") or ())).matches(own)
        for rule in selector.get("matchExpressions") or ()
    )


def selector_text(selector: Object | None) -> str:
    """Return a `LabelSelector` as the text that `labelSelector=` takes."""
    selector = selector or {}
    parts = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for rule in selector.get("matchExpressions") or ():
        values = ",".join(sorted(rule.get("values") or ()))
        text = {
            "Exists": "{key}",
            "DoesNotExist": "!{key}",
            "In": "{key} in ({values})",
            "NotIn": "{key} notin ({values})",
        }
        parts.append(text[rule["operator"]].format(key=rule["key"], values=values))
    return ",".join(parts)


def field_predicate(text: str, kind: ServedKind) -> Predicate | None:
    conditions = [_field_condition(part, text, kind) for part in sorted(text.split(",")) if part]
    if not conditions:
        return None
    return lambda obj: all(condition(obj) for condition in conditions)


def exact_name(text: str) -> str:
    """Return the name that `metadata.name=` asks for, so that the store need not be searched, or ""."""
    for part in text.split(","):
        key, separator, value = part.partition("=")
        if separator and key == "metadata.name":
            return value.removeprefix("=")
    return ""


def _field_condition(part: str, text: str, kind: ServedKind) -> Predicate:
    match = _FIELD.fullmatch(part)
    if match is None:
        raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
    label, operator, wanted = match.groups()
    path = kind.selectable().get(label)
    if path is None:
        raise bad_request(_unknown_field(label, kind))
    equal = operator != "!="
    return lambda obj: (_field_text(obj, path) == wanted) is equal


def _unknown_field(label: str, kind: ServedKind) -> str:
    if kind.fields:
        return f"field label not supported: {label}"
    known = ", ".join(shown(name) for name in kind.selectable())
    return f"{shown(label)} is not a known field selector: only {known}"


_WHEN_ABSENT: Mapping[str, str] = {"spec.unschedulable": "false", "spec.hostNetwork": "false", "status.succeeded": "0"}


def _field_text(obj: Object, path: str) -> str:
    value = dig(obj, path)
    if value is None:
        return _WHEN_ABSENT.get(path, "")
    return str(value).lower() if isinstance(value, bool) else str(value)
