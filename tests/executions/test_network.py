"""Who reaches whom where NetworkPolicies are enforced: those of deploy/, of the controller and of a cluster, taken together."""

import pytest

from tests.executions.networks import network

ANY_PORT = 43210
PODS_OF_USERS = ("workspace", "head", "worker")


FORBIDDEN = (
    *("the API server", "the API server's private address", "the database", "the database's private address"),
    *("the metadata address", "the metadata address in IPv6", "the metadata address, translated"),
    *("web", "proxy", "controller", "migrate"),
    *("another workspace", "another head", "a pod of another namespace", "a pod of kube-system"),
)


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
