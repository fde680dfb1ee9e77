"""The policies of executions' namespace: made, brought back and never opened too far; and who reaches whom where they are enforced."""

import random
from collections.abc import Iterable
from typing import Any

import pytest

from grid.core.egress import read_egress
from grid.core.errors import ClusterUnavailable, NotAllowed
from grid.executions.policykeeper import Network, PolicyKeeper, resolve
from grid.kube.objects import RawObject
from grid.kube.resources import ENDPOINT_SLICES, ENDPOINTS, NETWORK_POLICIES
from tests.executions.networks import network
from tests.support.builders import NAMESPACE
from tests.support.cluster import FakeCluster

EGRESS, _ = read_egress(["0.0.0.0/0"], ["10.20.0.5:9000"])
DEFAULT = {"name": "kubernetes", "namespace": "default"}
ANY_PORT = 43210
PODS_OF_USERS = ("workspace", "head", "worker")
FORBIDDEN = (
    *("the API server", "the API server's private address", "the database", "the database's private address"),
    *("the metadata address", "the metadata address in IPv6", "the metadata address, translated"),
    *("web", "proxy", "controller", "migrate"),
    *("another workspace", "another head", "a pod of another namespace", "a pod of kube-system"),
)


def serving(*addresses: str) -> FakeCluster:
    cluster = FakeCluster()
    endpoints = [{"addresses": [address]} for address in addresses]
    cluster.put(ENDPOINT_SLICES, {"metadata": DEFAULT, "addressType": "IPv4", "endpoints": endpoints})
    return cluster


def keeper(cluster: FakeCluster, hosts: dict[str, list[str]] | None = None, network: Network | None = None) -> Any:
    known = hosts if hosts is not None else {}

    async def look_up(host: str) -> Iterable[str]:
        if host not in known:
            raise OSError("Name or service not known")
        return known[host]

    chosen = network or Network(EGRESS, tuple(known))
    return PolicyKeeper(cluster, NAMESPACE, chosen, rng=random.Random(1), resolve=look_up)


def policy(cluster: FakeCluster, name: str) -> RawObject:
    (kept,) = [each for each in cluster.objects(NETWORK_POLICIES) if each["metadata"]["name"] == name]
    return kept


def shut(cluster: FakeCluster) -> list[str]:
    """What is cut out of the way outward; one that is not open at all cannot be asked."""
    (outward,) = [block for block in ways_out(cluster) if block["cidr"] == "0.0.0.0/0"]
    return list(outward["except"])


def ways_out(cluster: FakeCluster) -> list[RawObject]:
    rules = policy(cluster, "executions")["spec"]["egress"]
    return [peer["ipBlock"] for rule in rules for peer in rule["to"] if "ipBlock" in peer]


async def kept_once() -> tuple[FakeCluster, PolicyKeeper]:
    cluster = serving("34.1.2.3")
    kept = keeper(cluster)
    await kept.keep()
    return cluster, kept


async def test_both_policies_exclude_api_server_and_database_addresses() -> None:
    cluster = serving("34.1.2.3", "34.1.2.4")
    await keeper(cluster, {"db.example.com": ["20.4.5.6"]}).keep()
    assert {"34.1.2.3/32", "34.1.2.4/32", "20.4.5.6/32", "10.0.0.0/8"} <= set(shut(cluster))
    assert {kept["metadata"]["name"] for kept in cluster.objects(NETWORK_POLICIES)} == {"executions", "user-interfaces"}


async def test_a_second_look_writes_nothing() -> None:
    cluster, kept = await kept_once()
    await kept.keep()
    assert cluster.count("create") == 2
    assert cluster.count("replace") == 0


async def test_deleted_or_changed_policy_is_restored() -> None:
    cluster, kept = await kept_once()
    whole = policy(cluster, "executions")["spec"]
    cluster.put(NETWORK_POLICIES, {**policy(cluster, "executions"), "spec": {**whole, "egress": [{}]}})
    cluster.remove(NETWORK_POLICIES, "user-interfaces", namespace=NAMESPACE)
    await kept.keep()
    assert policy(cluster, "executions")["spec"] == whole
    assert policy(cluster, "user-interfaces")


async def test_moved_api_server_is_shut_at_its_new_address() -> None:
    cluster, kept = await kept_once()
    cluster.put(ENDPOINT_SLICES, {"metadata": DEFAULT, "endpoints": [{"addresses": ["34.7.7.7"]}]})
    await kept.keep()
    assert "34.7.7.7/32" in shut(cluster)


async def test_where_there_are_no_slices_endpoints_are_read() -> None:
    cluster = FakeCluster()
    cluster.put(ENDPOINTS, {"metadata": DEFAULT, "subsets": [{"addresses": [{"ip": "34.1.2.3"}]}]})
    await keeper(cluster).keep()
    assert "34.1.2.3/32" in shut(cluster)


@pytest.mark.parametrize("is_refused", [True, False], ids=["forbidden", "not there"])
async def test_egress_is_shut_while_api_server_address_is_unknown(
    is_refused: bool, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = FakeCluster()
    kept = keeper(cluster)
    for _ in range(2):
        if is_refused:
            cluster.fail_next(NotAllowed("endpointslices is forbidden"), verb="get")
        await kept.keep()
    assert not ways_out(cluster)
    assert policy(cluster, "user-interfaces"), "the proxy reaches them all the same"
    (line,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert "API server" in line


async def test_an_endpoints_object_without_addresses_opens_nothing() -> None:
    cluster = serving()
    await keeper(cluster).keep()
    assert not ways_out(cluster)


async def test_a_cluster_that_does_not_answer_changes_nothing() -> None:
    cluster, kept = await kept_once()
    cluster.fail_next(ClusterUnavailable("connection refused"), verb="get")
    with pytest.raises(ClusterUnavailable):
        await kept.keep()
    assert ways_out(cluster)


async def test_unresolved_database_keeps_all_shut_until_found_once() -> None:
    cluster, hosts = serving("34.1.2.3"), {"db.example.com": ["20.4.5.6"]}
    addresses = hosts.pop("db.example.com")
    kept = keeper(cluster, hosts, Network(EGRESS, ("db.example.com",)))
    await kept.keep()
    assert not ways_out(cluster)
    hosts["db.example.com"] = addresses
    await kept.keep()
    assert "20.4.5.6/32" in shut(cluster)
    hosts["db.example.com"] = ["20.4.5.7"]
    await kept.keep()
    hosts.clear()
    await kept.keep()
    assert {"20.4.5.6/32", "20.4.5.7/32"} <= set(shut(cluster)), "a name may give out the former one again"


async def test_new_leader_tolerates_only_a_short_resolver_failure() -> None:
    cluster, hosts = serving("34.1.2.3"), {"db.example.com": ["20.4.5.6"]}
    network = Network(EGRESS, ("db.example.com",))
    assert await keeper(cluster, hosts, network).keep()
    new_leader = keeper(cluster, {}, network)
    for _ in range(7):
        assert not await new_leader.keep()
        assert ways_out(cluster)
    assert not await new_leader.keep()
    assert not ways_out(cluster)


async def test_a_name_is_resolved_to_all_its_addresses() -> None:
    assert set(await resolve("127.0.0.1")) == {"127.0.0.1"}
    assert set(await resolve("localhost")) & {"127.0.0.1", "::1"}


def test_a_users_pod_does_not_reach_what_is_forbidden() -> None:
    net, ports = network(), (80, 443, 6443, 5432, 8000, 8001, 8443, 8888, ANY_PORT)
    ways = [(source, to) for source in PODS_OF_USERS for to in FORBIDDEN]
    assert [way for way in ways if any(net.lets(*way, port) for port in ports)] == []


@pytest.mark.parametrize("source", PODS_OF_USERS)
def test_user_pod_reaches_dns_internet_and_allowed_storage(source: str) -> None:
    net = network()
    assert net.lets(source, "dns", 53) and net.lets(source, "dns", 53, "UDP")
    assert not net.lets(source, "dns", 9153), "only what it is asked at"
    assert net.lets(source, "the internet", 443)
    assert net.lets(source, "the internet in IPv6", 443)
    assert net.lets(source, "storage", 9000)
    assert not net.lets(source, "storage", 22)


def test_executions_are_shut_before_a_controller_has_led() -> None:
    net = network(leads=False)
    for to in ("dns", "the internet", "storage", "head", "web", "the API server"):
        assert not any(net.lets("another workspace", to, port) for port in (53, 443, 9000, ANY_PORT)), to
    assert not net.lets("proxy", "another workspace", 8888)


def test_user_interface_is_reached_by_proxy_and_controller_only() -> None:
    net = network()
    assert net.lets("proxy", "another workspace", 8888)
    assert net.lets("controller", "another workspace", 8888), "it asks whether it is idle"
    for source in ("web", "migrate", "the ingress controller", "the internet", "the API server"):
        assert not net.lets(source, "another workspace", 8888)


@pytest.mark.parametrize("source", ["the ingress controller", "a pod of another namespace"])
def test_ingress_reaches_web_and_proxy_only(source: str) -> None:
    net = network()
    assert net.lets(source, "web", 8000)
    assert net.lets(source, "proxy", 8001)
    assert not any(net.lets(source, to, 9100) for to in ("web", "proxy")), (
        "metrics are for whom a policy of yours lets in"
    )
    assert not any(net.lets(source, to, ANY_PORT) for to in ("controller", "migrate", *PODS_OF_USERS))


def test_the_api_server_reaches_the_metric_of_what_waits() -> None:
    net = network()
    assert net.lets("the API server", "web", 8443)
    assert not net.lets("the API server", "web", 8000)
    assert net.lets("controller", "web", 8443)


@pytest.mark.parametrize("source", ["web", "proxy", "controller"])
def test_own_processes_reach_database_api_server_and_dns_only(source: str) -> None:
    net = network()
    assert net.lets(source, "the database", 5432)
    assert net.lets(source, "the API server", 443) and net.lets(source, "the API server's private address", 6443)
    assert net.lets(source, "dns", 53, "UDP")
    assert not net.lets(source, "the metadata address", 80)
    assert not net.lets(source, "the internet", 80)


def test_the_job_of_the_tables_reaches_the_database_only() -> None:
    net = network()
    assert net.lets("migrate", "the database", 5432)
    assert not net.lets("migrate", "the API server", 443)
    assert not net.lets("migrate", "web", 8000)
