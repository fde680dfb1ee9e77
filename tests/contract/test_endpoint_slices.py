"""EndpointSlices of Services."""

import pytest

from tests.contract.manifests import metadata
from tests.contract.space import Space
from tests.contract.versions import Version


@pytest.fixture
def dated(space: Space, version: Version) -> Space:
    """Kubernetes 1.20 has them as a beta."""
    return Space(space.client, space.namespace, beta="v1beta1" if version < (1, 21) else "")


async def test_a_service_has_a_slice_that_goes_with_it(space: Space, dated: Space, name: str) -> None:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(name),
        "spec": {"selector": {"app": name}, "ports": [{"port": 80}]},
    }
    (await space.create("services", service)).ok(201)
    selector = f"kubernetes.io/service-name={name}"
    [endpoint_slice] = await dated.until_items(
        "endpointslices", lambda items: len(items) == 1, "a slice", labelSelector=selector
    )
    assert endpoint_slice["addressType"] == "IPv4"
    assert not endpoint_slice.get("endpoints")
    labels = endpoint_slice["metadata"]["labels"]
    assert labels["endpointslice.kubernetes.io/managed-by"] == "endpointslice-controller.k8s.io"
    (await space.delete("services", name)).ok()
    await dated.until_items("endpointslices", lambda items: not items, "gone", labelSelector=selector)
