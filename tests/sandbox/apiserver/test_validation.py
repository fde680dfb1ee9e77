"""What may be created and changed, in the words of Kubernetes' own validation, where nothing was recorded."""

import copy
from typing import Any

import pytest

from grid.sandbox.apiserver.validation import others

OLD_CLAIM: dict[str, Any] = {
    "metadata": {"name": "files"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "4Gi"}}, "volumeName": "pvc-1"},
    "status": {"phase": "Bound", "capacity": {"storage": "2Gi"}},
}
SHRUNK = "spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"
FIXED = (
    "spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName "
    "for bound claims"
)


@pytest.mark.parametrize(
    ("size", "phase", "problems"),
    [
        ("8Gi", "Bound", []),
        ("2Gi", "Bound", [SHRUNK]),
        ("8Gi", "Pending", [FIXED]),
        ("1Gi", "Pending", [FIXED, SHRUNK]),
    ],
)
def test_claim_grows_when_bound_and_never_shrinks(size: str, phase: str, problems: list[str]) -> None:
    old = copy.deepcopy(OLD_CLAIM) | {"status": OLD_CLAIM["status"] | {"phase": phase}}
    new = copy.deepcopy(old)
    new["spec"]["resources"]["requests"]["storage"] = size
    assert [f"{cause.field}: {cause.message}" for cause in others.check_claim_update(new, old)] == problems
