"""Label selectors and node selectors: whether they match, as Kubernetes compares, and how a person reads them."""

from collections.abc import Mapping, Sequence

from grid.core.translation import gettext as _
from grid.kube.objects import Node
from grid.kube.slim import LabelSelector, NodeSelectorTerm, NodeTerms, SelectorRequirement


def matches_labels(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Return True when the selector matches; None matches nothing, an empty one matches everything."""
    if selector is None:
        return False
    if selector.match_labels and not selector.match_labels.items() <= labels.items():
        return False
    return all(_matches(requirement, labels) for requirement in selector.match_expressions or ())


def matches_terms(terms: NodeTerms, node: Node) -> bool:
    """Return True when the node matches one of the alternatives."""
    return any(_matches_term(term, node) for term in terms.node_selector_terms or ())


def keys_of(terms: NodeTerms) -> frozenset[str]:
    """Return the labels that decide; "" stands for the node's name."""
    each = terms.node_selector_terms or ()
    labels = {requirement.key for term in each for requirement in term.match_expressions or ()}
    return frozenset(labels | {""} if any(term.match_fields for term in each) else labels)


def in_words(terms: NodeTerms) -> str:
    """Return the alternatives: "zone z2 or z3, or a label disk"."""
    each = [
        _(" and ").join([*map(_words, term.match_expressions or ()), *map(_field_words, term.match_fields or ())])
        for term in terms.node_selector_terms or ()
    ]
    return _(", or ").join(words or _("nothing") for words in each) or _("nothing")


def selector_in_words(selector: LabelSelector | None) -> str:
    if selector is None:
        return _("nothing")
    labels = [f"{key}={value}" for key, value in (selector.match_labels or {}).items()]
    return ", ".join([*labels, *map(_words, selector.match_expressions or ())]) or _("any labels")


def _matches_term(term: NodeSelectorTerm, node: Node) -> bool:
    """A term without any requirement matches no node."""
    if not term.match_expressions and not term.match_fields:
        return False
    name, labels = {"metadata.name": node.metadata.name}, node.metadata.labels
    is_named = all(_matches(requirement, name) for requirement in term.match_fields or ())
    return is_named and all(_matches(requirement, labels) for requirement in term.match_expressions or ())


def _matches(requirement: SelectorRequirement, labels: Mapping[str, str]) -> bool:
    value, values = labels.get(requirement.key), requirement.values or ()
    if requirement.operator in ("In", "NotIn"):
        return (value in values) is (requirement.operator == "In")
    if requirement.operator in ("Exists", "DoesNotExist"):
        return (value is not None) is (requirement.operator == "Exists")
    difference = _compare(value, values)
    return (requirement.operator == "Gt" and difference > 0) or (requirement.operator == "Lt" and difference < 0)


def _compare(value: str | None, values: Sequence[str]) -> int:
    """Return the sign of the difference; 0, which satisfies neither Gt nor Lt, when one is no whole number."""
    try:
        return int(value or "") - int(values[0])
    except (ValueError, IndexError):
        return 0


_WORDS = {
    "In": "{key}={values}", "NotIn": _("{key} other than {values}"), "Exists": _("a label {key}"), "DoesNotExist": _("no label {key}"),
    "Gt": _("{key} above {values}"), "Lt": _("{key} below {values}"),
}  # fmt: skip


def _words(requirement: SelectorRequirement) -> str:
    words = _WORDS.get(requirement.operator, "{key} {operator} {values}")
    values = " or ".join(requirement.values or ())
    return words.format(key=requirement.key, operator=requirement.operator, values=values)


def _field_words(requirement: SelectorRequirement) -> str:
    return _words(requirement).replace("metadata.name=", _("the name ")).replace("metadata.name", _("a name"))
