"""What was stored at launch, by this version or an earlier one, is read as it was meant."""

from typing import Any

import msgspec
import pytest

from grid.executions.manifests import build
from grid.executions.spec import parse_spec
from grid.models import Execution
from tests.executions.test_manifests import spec


def test_spec_from_before_clusters_gives_the_same_objects() -> None:
    frozen: dict[str, Any] = msgspec.to_builtins(spec())
    now = build(parse_spec(Execution(spec=frozen)), namespace="compute-grid", token="t")
    then = build(
        parse_spec(Execution(spec={key: value for key, value in frozen.items() if key != "cluster"})),
        namespace="compute-grid",
        token="t",
    )
    assert then == now


@pytest.mark.parametrize("stored", [None, {}, [], {"id": 1}, "text"])
def test_a_spec_that_cannot_be_read_says_so(stored: object) -> None:
    with pytest.raises(ValueError, match="What was stored at launch cannot be read"):
        parse_spec(Execution(spec=stored))
