"""What is kept in memory of a pod's demands on its node."""

from grid.kube.objects import DEFAULT_SCHEDULER, Pod, PodSpec, Volume
from tests.support.builders import decode, pod

TOKEN = {"name": "kube-api-access-2lwbc", "projected": {"sources": []}}
TERMS = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}


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


def test_only_required_terms_of_an_affinity_are_kept() -> None:
    required = {
        "requiredDuringSchedulingIgnoredDuringExecution": TERMS,
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {}}],
    }
    affinity = spec_of(affinity={"nodeAffinity": required}).affinity
    assert affinity is not None
    assert affinity.node_affinity is not None
    assert affinity.node_affinity.required is not None
    (term,) = affinity.node_affinity.required.node_selector_terms or ()
    (requirement,) = term.match_expressions or ()
    assert (requirement.key, requirement.operator, requirement.values) == ("zone", "In", ("a",))
    assert affinity.pod_affinity is affinity.pod_anti_affinity is None


def test_the_zone_of_a_volume_is_read() -> None:
    volume = decode({"metadata": {"name": "v"}, "spec": {"nodeAffinity": {"required": TERMS}}}, Volume)
    assert volume.spec.node_affinity is not None
    assert volume.spec.node_affinity.required is not None
