"""What is kept in memory of a pod's demands on its node."""

from grid.kube.objects import DEFAULT_SCHEDULER, Pod, PodSpec
from tests.support.builders import decode, pod

TOKEN = {"name": "kube-api-access-2lwbc", "projected": {"sources": []}}


def spec_of(**spec: object) -> PodSpec:
    return decode(pod("p", spec=spec), Pod).spec


def test_volumes_without_a_claim_are_not_kept() -> None:
    claim = {"name": "files", "persistentVolumeClaim": {"claimName": "project-1"}}
    scratch = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}}
    kept = spec_of(volumes=[TOKEN, claim, scratch]).volumes
    assert [volume.claim_of("p") for volume in kept] == ["project-1", "p-scratch"]


def test_a_pod_that_demands_nothing_shares_its_empty_values() -> None:
    plain = {"volumes": [TOKEN], "schedulerName": "default-scheduler", "preemptionPolicy": "PreemptLowerPriority"}
    first, second = spec_of(**plain), spec_of(**plain)
    assert first.volumes is second.volumes is PodSpec().volumes
    assert first.scheduler_name is second.scheduler_name is DEFAULT_SCHEDULER
    assert first.preemption_policy is second.preemption_policy
    assert first.affinity is None
    assert first.containers[0].ports is second.containers[0].ports


def test_only_host_ports_are_kept() -> None:
    ports = [{"containerPort": 8888}, {"containerPort": 80, "hostPort": 8080, "protocol": "UDP"}]
    (kept,) = spec_of(containers=[{"name": "run", "ports": ports}]).containers[0].ports
    assert (kept.host_port, kept.protocol, kept.host_ip) == (8080, "UDP", "")
