"""A real API server answers `"items": null` for an empty list of metadata alone, because Go writes an empty slice so."""

from typing import Any

import pytest

from grid.executions.apply import list_all, pod_metadata
from grid.kube.objects import Pod
from grid.kube.resources import PODS


class NullLists:
    async def list_page(self, *_: Any, **__: Any) -> bytes:
        return b'{"kind": "PartialObjectMetadataList", "metadata": {"resourceVersion": "7"}, "items": null}'


@pytest.mark.parametrize("metadata_only", [True, False])
async def test_an_empty_list_may_be_null(metadata_only: bool) -> None:
    api: Any = NullLists()
    assert await list_all(api, PODS, Pod, namespace="n", label_selector="", metadata_only=metadata_only) == []
    assert await pod_metadata(api, namespace="n", label_selector="") == {}
