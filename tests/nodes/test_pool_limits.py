"""A pool's minimum and maximum: where they can be changed, what others would do, and who is refused."""

from decimal import Decimal

import pytest

from dashboard.nodes.viewmodels.pool_limits import Limits, PricedTier, parse_limits, preview
from grid.core.errors import ClusterUnavailable, Conflict
from grid.diagnosis.nodeshapes import NodeShape, PoolShapes
from grid.kube.pools import NodeGroup
from grid.kube.resources import CONFIG_MAPS, NODES
from grid.models import AuditEntry
from grid.runtime import Runtime
from grid.tiers.tierdoctor import TierRequest
from tests.conftest import People, client_of
from tests.support import builders
from tests.support.cluster import POPULATION, FakeCluster
from tests.support.runtime import fill

PAGE = "/pools/default/limits/"
STATUS = "nodeGroups: [{name: default, health: {cloudProviderTarget: 2, minSize: 1, maxSize: 5}}]"
WANTED = {"minimum": "3", "maximum": "4", "was": "1-5", "reason": "Course on <Monday>"}


@pytest.fixture
def scene(db: None, cluster: FakeCluster, runtime: Runtime) -> FakeCluster:
    cluster.put(NODES, builders.node("n1"))
    about = builders.config_map("cluster-autoscaler-status", {"status": STATUS}, namespace="kube-system")
    cluster.put(CONFIG_MAPS, about)
    cluster.sandbox = POPULATION
    fill(runtime, cluster)
    return cluster


def test_operator_previews_and_sets_limits_with_audit_entry(scene: FakeCluster, people: People) -> None:
    client = client_of(people.operator)
    page = client.get(PAGE, WANTED).text
    assert "1 node is started at once" in page and "At its largest the pool has 1 node less." in page
    assert client.post(PAGE, WANTED | {"reason": " "}).status_code == 422
    assert client.post(PAGE, WANTED).status_code == 302
    body = {"minimum": 3, "maximum": 4, "was": [1, 5]}
    assert scene.asked_of_sandbox[-1] == ("PATCH", "pools/default", body)
    entry = AuditEntry.objects.get()
    assert (entry.object_type, entry.object_id) == ("nodepool", "default")
    assert entry.changes == {"minimum": [1, 3], "maximum": [5, 4], "reason": ["", "Course on <Monday>"]}


def test_stale_limits_are_refused(scene: FakeCluster, people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    client = client_of(people.operator)
    late = client.post(PAGE, WANTED | {"was": "0-5"})
    assert late.status_code == 422 and "Look again" in late.text and "1 node is started at once" in late.text
    assert "already" in client.post(PAGE, WANTED | {"minimum": "1", "maximum": "5"}).text
    assert "at most the maximum" in client.post(PAGE, WANTED | {"minimum": "9"}).text
    assert not AuditEntry.objects.exists()

    async def changed(method: str, path: str, body: object = None) -> dict[str, str]:
        if method == "PATCH":
            raise Conflict("The pool's limits were changed meanwhile.")
        return {}

    monkeypatch.setattr(scene, "ask_sandbox", changed)
    assert "changed meanwhile" in client.post(PAGE, WANTED).text
    assert [sorted(entry.changes) for entry in AuditEntry.objects.order_by("pk")] == [
        ["maximum", "minimum", "reason"],
        ["not done"],
    ]


def test_other_clusters_explain_where_limits_are_set(scene: FakeCluster, people: People) -> None:
    scene.sandbox = None
    client = client_of(people.operator)
    page = client.get(PAGE).text
    assert "They cannot be changed here." in page and "aws eks update-nodegroup-config" in page
    assert client.post(PAGE, WANTED).status_code == 422
    assert not AuditEntry.objects.exists()


def test_silent_cluster_hides_limits(scene: FakeCluster, people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(*_: object) -> dict[str, str]:
        raise ClusterUnavailable("It does not answer.")

    monkeypatch.setattr(scene, "ask_sandbox", away)
    page = client_of(people.operator).get(PAGE).text
    assert "not known now" in page and "cannot be changed here" not in page


def test_the_preview_counts_nodes_money_and_room() -> None:
    shape = NodeShape({"cpu": 8000, "memory": 2**35}, {}, (), 2, 0)
    pool = PoolShapes("default", (shape,), 5)
    tier = PricedTier("Medium", TierRequest("default", {"cpu": 2000, "memory": 2**32}), Decimal("0.50"))
    group = NodeGroup("default", 1, 5, 4)
    grown = " ".join(preview(group, Limits(6, 8), pool, [tier], 0))
    assert "2 nodes are started at once: $4.00 an hour by the price of the tier Medium." in grown
    assert "Up to 3 more nodes may be started when pods ask for them: $6.00 an hour" in grown
    shrunk = " ".join(preview(group, Limits(0, 3), pool, [tier], 2))
    assert "down to the new minimum" in shrunk and "less room for executions: 8 of Medium" in shrunk
    assert "The pool has 4 nodes now. None is removed for this" in shrunk and "2 pods that wait" in shrunk
    assert [*preview(group, Limits(1, 4), PoolShapes("default"), [], 0)] == ["At its largest the pool has 1 node less."]


@pytest.mark.parametrize(
    ("minimum", "maximum"), [("-1", "2"), ("x", "2"), ("3", "2"), ("0", "0"), ("1", "²"), ("", "")]
)
def test_limits_that_cannot_be_are_refused(minimum: str, maximum: str) -> None:
    assert parse_limits(minimum, maximum)[0] is None
