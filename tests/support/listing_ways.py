"""A reflector keeps its promises whichever way the server lets it read lists."""

import pytest

from tests.support.cluster import FakeCluster


@pytest.fixture(params=["served", "refused"])
def both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the test with streaming lists, and with a server that refuses them."""
    monkeypatch.setattr(FakeCluster, "streaming_lists", request.param)
