"""The two kinds of patches, beyond what was recorded."""

from typing import Any

import pytest

from grid.sandbox.apiserver.patches import NoMergeKey, merge_patch, strategic_merge


# From RFC 7386, appendix A.
@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patches_follow_their_rfc(target: Any, patch: Any, result: Any) -> None:
    assert merge_patch(target, patch) == result


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
