"""The three kinds of patches, beyond what was recorded."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.sandbox.apiserver.patches.json_patch import CannotApply, json_patch, merge_patch
from grid.sandbox.apiserver.patches.strategic import NoMergeKey, strategic_merge

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=10,
)


# From RFC 7386, appendix A.
@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patches_follow_their_rfc(target: Any, patch: Any, result: Any) -> None:
    assert merge_patch(target, patch) == result


@given(_JSON, _JSON)
def test_a_merge_patch_applied_twice_is_applied_once(target: Any, patch: Any) -> None:
    once = merge_patch(target, patch)
    assert merge_patch(once, patch) == once


@pytest.mark.parametrize(
    ("operations", "result"),
    [
        ([{"op": "add", "path": "/l/1", "value": "x"}], {"l": [1, "x", 2], "m": {"a": 1}}),
        ([{"op": "add", "path": "/l/-", "value": 3}], {"l": [1, 2, 3], "m": {"a": 1}}),
        ([{"op": "remove", "path": "/l/0"}], {"l": [2], "m": {"a": 1}}),
        ([{"op": "move", "from": "/m/a", "path": "/b"}], {"l": [1, 2], "m": {}, "b": 1}),
        ([{"op": "copy", "from": "/l", "path": "/m/l"}], {"l": [1, 2], "m": {"a": 1, "l": [1, 2]}}),
        ([{"op": "replace", "path": "", "value": {}}], {}),
        ([{"op": "add", "path": "/m/a~1b~0c", "value": 1}], {"l": [1, 2], "m": {"a": 1, "a/b~c": 1}}),
    ],
)
def test_json_patches_follow_their_rfc(operations: list[Any], result: Any) -> None:
    target = {"l": [1, 2], "m": {"a": 1}}
    assert json_patch(target, operations) == result
    assert target == {"l": [1, 2], "m": {"a": 1}}, "the target is left alone"


@pytest.mark.parametrize(
    "operation",
    [
        "add",
        {"op": "add", "path": "/l/9", "value": 1},
        {"op": "add", "path": "l", "value": 1},
        {"op": "add", "path": "/x"},
        {"op": "add", "path": "/l/01x", "value": 1},
        {"op": "replace", "path": "/none", "value": 1},
        {"op": "remove", "path": ""},
        {"op": "remove", "path": "/l/-"},
        {"op": "test", "path": "/l", "value": []},
        {"op": "copy", "path": "/x"},
        {"op": "add", "path": "/s/x", "value": 1},
    ],
)
def test_an_operation_that_cannot_be_done_fails_the_patch(operation: Any) -> None:
    with pytest.raises(CannotApply):
        json_patch({"l": [1], "s": "text"}, [operation])


@given(_JSON, st.lists(_JSON, max_size=3))
def test_json_patches_fail_in_one_way_only(target: Any, operations: list[Any]) -> None:
    with contextlib.suppress(CannotApply):
        json_patch(target, operations)


def test_keyed_lists_merge_and_others_are_replaced() -> None:
    spec = {"containers": [{"name": "a", "image": "1", "args": ["x"]}], "tolerations": [{"key": "a"}]}
    patch = {"containers": [{"name": "a", "args": ["y"]}], "tolerations": [{"key": "b"}]}
    assert strategic_merge(spec, patch, "PodSpec") == {
        "containers": [{"name": "a", "image": "1", "args": ["y"]}],
        "tolerations": [{"key": "b"}],
    }


def test_taints_are_replaced_because_keys_may_repeat() -> None:
    spec = {"taints": [{"key": "a", "effect": "NoSchedule"}]}
    patch = {"taints": [{"key": "a", "effect": "NoExecute"}]}
    assert strategic_merge(spec, patch, "NodeSpec") == patch


def test_service_ports_are_told_apart_by_their_port() -> None:
    spec = {"ports": [{"port": 80, "name": "a"}, {"port": 81}]}
    merged = strategic_merge(spec, {"ports": [{"port": 80, "targetPort": 8080}]}, "ServiceSpec")
    assert merged == {"ports": [{"port": 80, "name": "a", "targetPort": 8080}, {"port": 81}]}


def test_an_element_without_its_key_is_refused() -> None:
    with pytest.raises(NoMergeKey, match="declared merge key: name"):
        strategic_merge({"containers": []}, {"containers": [{"image": "x"}]}, "PodSpec")


def test_directives_do_not_end_up_in_the_object() -> None:
    patch = {
        "$retainKeys": ["a"],
        "a": {"$patch": "replace", "b": 1},
        "$setElementOrder/c": [],
        "d": {"$patch": "delete"},
    }
    assert strategic_merge({"a": {"x": 1}, "z": 1}, patch, "") == {"a": {"b": 1}, "d": {}}
