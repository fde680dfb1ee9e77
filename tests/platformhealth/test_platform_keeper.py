"""The controller looks at the platform, and records incidents once, whoever leads."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from grid.checks import versions
from grid.configuration import INCIDENT_RETENTION
from grid.controller import retention
from grid.core.errors import ClusterUnavailable, TooManyRequests
from grid.core.labels import KEYS
from grid.kube.objects import Event, Pod
from grid.kube.resources import CONFIG_MAPS, DEPLOYMENTS, LEASES, POD_METRICS, PODS, Resource
from grid.models import PlatformIncident, PlatformReport
from grid.platformhealth.facts import Light
from grid.platformhealth.keeper import record
from grid.platformhealth.reading import PlatformLook, PlatformReader, Watched
from grid.platformhealth.served_versions import VersionReader
from grid.platformhealth.versions import VersionLine
from tests.support import builders
from tests.support.builders import decode, stamp
from tests.support.cluster import FakeCluster
from tests.support.shop import NOW

OWN = "compute-grid-system"


class Clock:
    seconds = 0.0


def reader(cluster: FakeCluster, clock: Clock) -> PlatformReader:
    watched = Watched("compute-grid", OWN)
    return PlatformReader(cluster, watched, clock=lambda: NOW, monotonic=lambda: clock.seconds)


def read(platform: PlatformReader, *events: Event, pods: Sequence[Pod] = ()) -> PlatformLook:
    return async_to_sync(platform.read)(events, pods)


def states(seen: PlatformLook) -> dict[str, str]:
    return {light.key: light.severity for light in seen.lights}


def deployment(name: str, namespace: str, ready: int) -> dict[str, Any]:
    labels = {"k8s-app": "kube-dns"} if name == "coredns" else {"app": name}
    return {
        "metadata": builders.metadata(name, namespace=namespace, labels=labels),
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}},
        "status": {
            "readyReplicas": ready,
            "conditions": [{"type": "Progressing", "status": "True", "lastUpdateTime": stamp(NOW)}],
        },
    }


def renew(cluster: FakeCluster, *names: str, at: float) -> None:
    for name in names:
        spec = {"renewTime": stamp(NOW + timedelta(seconds=at)), "holderIdentity": "cp-1"}
        cluster.put(LEASES, {"metadata": builders.metadata(name, namespace="kube-system"), "spec": spec})


@pytest.fixture
def cluster() -> FakeCluster:
    cluster = FakeCluster()
    cluster.put(DEPLOYMENTS, deployment("coredns", "kube-system", 2))
    cluster.put(DEPLOYMENTS, deployment("proxy", OWN, 1))
    labels = {"app": "proxy"}
    ended = {"terminated": {"exitCode": 1, "finishedAt": stamp(NOW)}}
    status = builders.container_status(ready=True, restarts=3, lastState=ended)
    cluster.put(PODS, builders.pod("proxy-1", namespace=OWN, node="n1", ready=True, labels=labels, statuses=[status]))
    renew(cluster, "kube-scheduler", "kube-controller-manager", at=0)
    return cluster


def test_check_finds_lights_and_workloads_with_pods(cluster: FakeCluster) -> None:
    clock = Clock()
    platform = reader(cluster, clock)
    assert states(read(platform))["scheduler"] == "wait"  # read once
    clock.seconds = 30
    renew(cluster, "kube-scheduler", at=30)
    seen = read(platform)
    assert {
        "api-server": "ok",
        "dns": "ok",
        "scheduler": "ok",
        "controller-manager": "problem",
        "autoscaler": "neutral",
        "storage": "ok",
        "registry": "ok",
        "ingress": "neutral",
        "proxies": "problem",
    }.items() <= states(seen).items()
    proxy = next(workload for workload in seen.workloads if workload.name == "proxy")
    assert (proxy.ready, proxy.wanted, proxy.changed_at) == (1, 2, NOW)
    assert [(pod.name, pod.restarts, pod.restarted_at) for pod in proxy.pods] == [("proxy-1", 3, NOW)]


def test_a_missing_right_is_not_known_and_named(cluster: FakeCluster) -> None:
    cluster.forbidden |= dict.fromkeys((DEPLOYMENTS, LEASES, CONFIG_MAPS), "no")
    seen = read(reader(cluster, Clock()))
    for key in ("dns", "scheduler", "autoscaler", "proxies"):
        assert states(seen)[key] == "wait"
    sentences = {light.key: light.sentence for light in seen.lights}
    assert "list deployments.apps in kube-system (deploy/access.yaml)" in sentences["dns"]
    assert "get leases.coordination.k8s.io in kube-system" in sentences["scheduler"]
    assert len(seen.troubles) == 2 and seen.workloads == ()


def test_absent_api_server_is_sole_problem_and_others_unknown(cluster: FakeCluster) -> None:
    cluster.available = False
    lights = states(read(reader(cluster, Clock())))
    assert lights["api-server"] == "problem"
    assert {lights[key] for key in ("dns", "scheduler", "controller-manager", "autoscaler", "metrics", "proxies")} == {
        "wait"
    }
    assert [key for key, state in lights.items() if state == "problem"] == ["api-server"]


def test_metrics_that_fail_alone_are_their_own_problem(cluster: FakeCluster) -> None:
    """The API server answers for a metrics server that is away, with 503."""
    list_page = cluster.list_page

    async def without_metrics(resource: Resource, **asked: Any) -> bytes:
        if resource == POD_METRICS:
            raise ClusterUnavailable("The server is currently unable to handle the request.")
        return await list_page(resource, **asked)

    cluster.list_page = without_metrics  # type: ignore[method-assign]
    lights = {light.key: light for light in read(reader(cluster, Clock())).lights}
    assert (lights["api-server"].severity, lights["metrics"].severity) == ("ok", "problem")
    assert "unable to handle the request" in lights["metrics"].sentence


def test_throttling_is_the_api_servers_problem_with_its_wait(cluster: FakeCluster) -> None:
    cluster.fail_next(TooManyRequests("too many requests", retry_after=7), times=100)
    lights = {light.key: light for light in read(reader(cluster, Clock())).lights}
    assert lights["api-server"].severity == "problem"
    assert "has too many requests (HTTP 429) and asks us to wait 7 s." in lights["api-server"].sentence
    assert lights["dns"].sentence == "Not known: The cluster limits our requests."


def test_failing_checks_of_the_api_server_are_named(cluster: FakeCluster) -> None:
    cluster.readyz = "[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed\n"
    assert "etcd" in read(reader(cluster, Clock())).lights[0].sentence


IMAGE = "reg.example.com/a:1"


def job(name: str, state: dict[str, Any], *, person: str = "ada", image: str = IMAGE) -> dict[str, Any]:
    return builders.pod(
        name,
        node="n1",
        labels={KEYS.user: person},
        containers=[{"name": "run", "image": image}],
        statuses=[builders.container_status(state=state)],
    )


BACKING_OFF = {"waiting": {"reason": "ImagePullBackOff"}}
RUNNING = {"running": {"startedAt": stamp(NOW)}}


def failed(about: dict[str, Any], minutes: int = 1, image: str = IMAGE) -> Event:
    message, at = f'Failed to pull image "{image}": i/o timeout', NOW - timedelta(minutes=minutes)
    return decode(builders.event("e", about=about, reason="Failed", message=message, kind="Warning", at=at), Event)


def registry(cluster: FakeCluster, events: list[Event], *pods: dict[str, Any]) -> str:
    return states(read(reader(cluster, Clock()), *events, pods=[decode(pod, Pod) for pod in pods]))["registry"]


def test_registry_light_counts_failures_of_last_minutes(cluster: FakeCluster) -> None:
    ada, bob = job("job-1", BACKING_OFF), job("job-2", BACKING_OFF, person="bob")
    assert registry(cluster, [failed(ada), failed(bob, 14)], ada, bob) == "problem"
    assert registry(cluster, [failed(ada), failed(bob, 16)], ada, bob) == "ok"


def test_registry_light_forgets_pods_that_are_gone(cluster: FakeCluster) -> None:
    ada, bob = job("job-1", BACKING_OFF), job("job-2", BACKING_OFF, person="bob")
    assert registry(cluster, [failed(ada), failed(bob)], ada) == "ok"
    assert registry(cluster, [failed(ada), failed(bob)]) == "ok"


def test_registry_light_believes_one_failure_of_pulled_image(cluster: FakeCluster) -> None:
    ada, bob = job("job-1", BACKING_OFF), job("job-2", RUNNING, person="bob")
    assert registry(cluster, [failed(ada)], ada) == "ok"
    assert registry(cluster, [failed(ada)], ada, bob) == "problem"
    message = f'Successfully pulled image "{IMAGE}" in 2s (2s including waiting). Image size: 9 bytes.'
    gone = job("job-3", {"terminated": {"exitCode": 0}})
    pulled = decode(builders.event("p", about=gone, reason="Pulled", message=message, at=NOW), Event)
    assert registry(cluster, [failed(ada), pulled], ada) == "problem"


WELL = Light("database", "Database", "ok", "")


def keep(severity: str, minute: float) -> None:
    light = Light("dns", "DNS", severity, f"It is {severity}.")  # type: ignore[arg-type]
    record("local", PlatformLook((light,), (), ()), [WELL], NOW + timedelta(minutes=minute))


def incidents() -> list[tuple[str, float, float | None]]:
    def minutes(at: Any) -> float | None:
        return None if at is None else (at - NOW) / timedelta(minutes=1)

    return [
        (incident.part, minutes(incident.at) or 0.0, minutes(incident.ended_at))
        for incident in PlatformIncident.objects.order_by("at")
    ]


@pytest.mark.django_db
def test_incident_is_recorded_once_across_leaders_and_ends() -> None:
    for minute in (0.5, 1, 1.5):  # all that is known lies in the database, as for a leader that has just begun
        keep("problem", minute)
    assert incidents() == [("dns", 0.5, None)]
    keep("ok", 2)
    assert incidents() == [("dns", 0.5, None)]
    keep("ok", 2.5)
    assert incidents() == [("dns", 0.5, 2.0)]
    keep("problem", 3)
    keep("problem", 3.5)
    assert incidents() == [("dns", 0.5, 2.0), ("dns", 3.0, None)]


@pytest.mark.django_db
def test_time_without_checks_is_a_controller_incident() -> None:
    keep("ok", 0)
    keep("ok", 2)
    assert incidents() == []
    keep("ok", 30)
    assert incidents() == [("controller", 2.0, 30.0)]
    assert PlatformReport.objects.get().checked_at == NOW + timedelta(minutes=30)


@pytest.mark.django_db
def test_ended_incidents_expire_and_open_ones_stay() -> None:
    for minute in (0, 0.5):
        keep("problem", minute)
    later = NOW + timedelta(days=INCIDENT_RETENTION.default + 1)
    assert retention.drop_incidents(later, 10) == 0
    PlatformIncident.objects.update(ended_at=NOW)
    assert retention.drop_incidents(later, 10) == 1


def test_versions_are_queried_hourly_and_missing_ones_reported(cluster: FakeCluster) -> None:
    clock = Clock()
    versions_reader = VersionReader(cluster, monotonic=lambda: clock.seconds)
    cluster.available = False
    assert async_to_sync(versions_reader.lines)()[0].severity == "wait"
    cluster.available = True  # what was not known is asked for again at once
    cluster.lacking.add("policy/v1")
    lines = async_to_sync(versions_reader.lines)()
    assert lines[0].sentence == "Kubernetes v1.36.2."
    assert [line.subject for line in lines if line.severity == "problem"] == ["policy/v1 poddisruptionbudgets"]
    cluster.lacking.clear()
    clock.seconds = 3599
    assert async_to_sync(versions_reader.lines)() == lines
    clock.seconds = 3601
    assert not [line for line in async_to_sync(versions_reader.lines)() if line.severity == "problem"]


@pytest.mark.django_db
def test_a_check_warns_of_what_the_cluster_lacks() -> None:
    bad = VersionLine("policy/v1 poddisruptionbudgets", "problem", "Not served.")
    record("local", PlatformLook((), (), ()), [WELL], NOW, [bad, VersionLine("Cluster", "ok", "Kubernetes v1.36.2.")])
    [warning] = versions(None, databases=["default"])
    assert (warning.id, warning.msg) == ("grid.W060", "policy/v1 poddisruptionbudgets: Not served.")
    assert versions(None, databases=None) == []
