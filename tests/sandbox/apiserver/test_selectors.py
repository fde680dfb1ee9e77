"""Label and field selectors mean what they mean to Kubernetes."""

import pytest
from hypothesis import given, strategies as st

from grid.sandbox.apiserver.kinds import stored_kinds
from grid.sandbox.apiserver.selectors import exact_name, field_predicate, label_predicate, selector_text, selects
from grid.sandbox.apiserver.status import Failure

PODS = stored_kinds()["pods"]
NO_INTEGER = 'unable to parse requirement: values[0]: Invalid value: "x"'
_KEYS = st.from_regex(r"[a-z]([-a-z0-9]{0,8}[a-z0-9])?", fullmatch=True)


def test_an_empty_selector_selects_everything() -> None:
    assert label_predicate("") is None
    assert field_predicate("", PODS) is None


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("app in web", "unable to parse requirement: found 'web' expected: '('"),
        ("=x", "found '=', expected: !, identifier, or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("n>x", f"{NO_INTEGER}: for 'Gt', 'Lt' operators, the value must be an integer"),
    ],
)
def test_invalid_selector_is_refused_in_words_of_kubernetes(selector: str, message: str) -> None:
    with pytest.raises(Failure) as refused:
        label_predicate(selector)
    assert (refused.value.code, refused.value.message) == (400, message)


def test_invalid_field_selector_is_shown_whole() -> None:
    with pytest.raises(Failure) as refused:
        field_predicate("status.phase=Running,spec.nodeName", PODS)
    message = "invalid selector: 'status.phase=Running,spec.nodeName'; can't understand 'spec.nodeName'"
    assert refused.value.message == message


@given(st.text(max_size=40))
def test_any_text_is_a_selector_or_bad_request(text: str) -> None:
    for parse in (label_predicate, lambda each: field_predicate(each, PODS)):
        try:
            predicate = parse(text)
        except Failure as refused:
            assert refused.code == 400
        else:
            if predicate is not None:
                predicate({"metadata": {"name": "x"}, "spec": {}})


@given(st.dictionaries(_KEYS, _KEYS, max_size=4), st.dictionaries(_KEYS, _KEYS, max_size=4))
def test_a_selector_written_as_text_selects_the_same(wanted: dict[str, str], labels: dict[str, str]) -> None:
    selector = {"matchLabels": wanted}
    predicate = label_predicate(selector_text(selector))
    assert selects(selector, labels) == (predicate is None or predicate({"metadata": {"name": "x", "labels": labels}}))


@pytest.mark.parametrize(
    ("rule", "labels", "expected"),
    [
        ({"key": "a", "operator": "In", "values": ["1", "2"]}, {"a": "2"}, True),
        ({"key": "a", "operator": "NotIn", "values": ["1"]}, {}, True),
        ({"key": "a", "operator": "Exists"}, {}, False),
        ({"key": "a", "operator": "DoesNotExist"}, {}, True),
    ],
)
def test_match_expressions_are_understood(rule: dict[str, object], labels: dict[str, str], expected: bool) -> None:
    assert selects({"matchExpressions": [rule]}, labels) is expected


def test_no_selector_at_all_selects_nothing() -> None:
    assert not selects(None, {"a": "b"})
    assert selects({}, {"a": "b"})


def test_exact_name_is_found_without_scanning() -> None:
    assert exact_name("status.phase=Running,metadata.name=a") == "a"
    assert exact_name("metadata.name!=a") == ""
