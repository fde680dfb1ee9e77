"""Validation of label selectors and node selectors inside objects."""

from grid.sandbox.apiserver.kinds import Object
from grid.sandbox.apiserver.names import label_key_problems
from grid.sandbox.apiserver.status import StatusCause, prohibited, required, wrong
from grid.sandbox.apiserver.validation.metadata import check_labels

_NODE_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_NEEDS_VALUES = "must be specified when `operator` is 'In' or 'NotIn'"
_FORBIDS_VALUES = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"


def check_node_selector_terms(terms: list[Object], path: str) -> list[StatusCause]:
    if not terms:
        return [required(path, "must have at least one node selector term")]
    causes: list[StatusCause] = []
    for number, term in enumerate(terms):
        for index, rule in enumerate(term.get("matchExpressions") or ()):
            causes += _check_rule(rule, f"{path}[{number}].matchExpressions[{index}]", _NODE_OPERATORS)
    return causes


def check_label_selector(selector: Object, path: str) -> list[StatusCause]:
    causes = check_labels(f"{path}.matchLabels", selector.get("matchLabels"))
    for index, rule in enumerate(selector.get("matchExpressions") or ()):
        causes += _check_rule(rule, f"{path}.matchExpressions[{index}]", _LABEL_OPERATORS)
    return causes


def _check_rule(rule: Object, path: str, operators: tuple[str, ...]) -> list[StatusCause]:
    operator, values = rule.get("operator", ""), rule.get("values") or []
    causes: list[StatusCause] = []
    if operator not in operators:
        causes.append(wrong(f"{path}.operator", operator, "not a valid selector operator"))
    elif operator in ("In", "NotIn") and not values:
        causes.append(required(f"{path}.values", _NEEDS_VALUES))
    elif operator in ("Exists", "DoesNotExist") and values:
        causes.append(prohibited(f"{path}.values", _FORBIDS_VALUES))
    elif operator in ("Gt", "Lt") and len(values) != 1:
        causes.append(required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'"))
    causes += [
        wrong(f"{path}.key", rule.get("key", ""), problem) for problem in label_key_problems(rule.get("key", ""))
    ]
    return causes
