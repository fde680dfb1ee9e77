"""What an expert found wrong in the explanations of volumes, devices and refused bindings; the messages are Kubernetes' own."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from grid.diagnosis.diagnosis import Diagnosis
from grid.diagnosis.pods import explain_pod
from grid.kube.objects import Event, Pod
from tests.diagnosis.placement.worlds import surroundings
from tests.diagnosis.situations import Case, event_saying, on_a_node
from tests.support.builders import MOMENT, NAMESPACE, condition, decode, metadata, node, pod, stamp

HOME = {"volumes": [{"name": "home", "persistentVolumeClaim": {"claimName": "home"}}]}
SCRATCH = {"volumes": [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]}
DEVICES = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "single-gpu"}]}
NOT_IN_TIME = 'running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded'
UNBOUND = "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims."
DELETED = '0/1 nodes are available: persistentvolumeclaim "home" is being deleted.'
NO_SCRATCH = (
    '0/1 nodes are available: waiting for ephemeral volume controller to create the persistentvolumeclaim "x-scratch".'
)
NO_QUOTA = (
    'ephemeral volume scratch: create PVC x-scratch: persistentvolumeclaims "x-scratch" is forbidden: exceeded quota: '
    "storage, requested: requests.storage=100Gi, used: requests.storage=950Gi, limited: requests.storage=1Ti"
)
NO_TEMPLATE = (
    'PodResourceClaim gpu: resource claim template "single-gpu": resourceclaimtemplate.resource.k8s.io "single-gpu" '
    "not found"
)
BINDING = 'binding rejected: running Bind plugin "DefaultBinder": '
HOOK_DOWN = (
    'Internal error occurred: failed calling webhook "validate.kyverno.svc-fail": failed to call webhook: Post '
    '"https://kyverno-svc.kyverno.svc:443/validate/fail?timeout=10s": context deadline exceeded'
)
DENIED = 'admission webhook "validation.gatekeeper.sh" denied the request: [allowed-repos] docker.io is not allowed'
PROVISIONING = 'failed to provision volume with StorageClass "gp3": rpc error: code = ResourceExhausted desc = '
RUNS_OUT = "googleapi: Error 403: QUOTA_EXCEEDED - Quota 'SSD_TOTAL_GB' exceeded. Limit: 500.0 in region europe-west1."
PROVISIONER = (
    "Waiting for a volume to be created either by the external provisioner 'ebs.csi.aws.com' or manually by the system "
    "administrator. If volume creation is delayed, please verify that the provisioner is running."
)


def on_node(reason: str, message: str) -> Diagnosis:
    creating = on_a_node({"waiting": {"reason": "ContainerCreating"}})
    return Case("", creating, [event_saying(reason, message)]).explain()


def unplaced(
    message: str,
    spec: dict[str, Any],
    *,
    pod_events: Sequence[tuple[str, str]] = (),
    claim: dict[str, Any] | None = None,
    claim_event: tuple[str, str] | None = None,
    knows_cluster: bool = True,
    minutes: float = 12,
) -> Diagnosis:
    waiting = pod("x", conditions=[condition("PodScheduled", "False", "Unschedulable", message)], spec=spec)
    events = [decode(event_saying(*each), Event) for each in pod_events]
    about_claim = [decode(event_saying(*claim_event), Event)] if claim_event else []
    objects = [claim, {"kind": "StorageClass", "metadata": metadata("gp3")}] if claim else []
    nearby = surroundings([node("n1")], [], objects, namespace=NAMESPACE, claim_events=lambda _claim: about_claim)
    return explain_pod(
        decode(waiting, Pod),
        events,
        now=MOMENT + timedelta(minutes=minutes),
        scheduling=nearby if knows_cluster else None,
    )


def pending(**more: Any) -> dict[str, Any]:
    return {
        "kind": "PersistentVolumeClaim",
        "metadata": metadata("home", namespace=NAMESPACE, **more),
        "spec": {"storageClassName": "gp3"},
        "status": {"phase": "Pending"},
    }


@pytest.mark.parametrize(
    ("reason", "message", "sentence", "step"),
    [
        pytest.param(
            "FailedMount",
            "MountVolume.MountDevice failed for volume \"pvc-1\" : rpc error: code = Internal desc = 'fsck' found errors on "
            "device /dev/nvme1n1 but could not correct them: UNEXPECTED INCONSISTENCY; RUN fsck MANUALLY.",
            "Volume pvc-1 cannot be mounted on the node: its file system is damaged.",
            "neither waiting nor another launch helps",
            id="26",
        ),
        pytest.param(
            "FailedMount",
            'MountVolume.SetUp failed for volume "pvc-1" : mount(2) system call failed: Structure needs cleaning.',
            "Volume pvc-1 cannot be mounted on the node: its file system is damaged.",
            "restore a snapshot",
            id="26-xfs",
        ),
        pytest.param(
            "FailedMount",
            'MountVolume.Setup failed while expanding volume for volume "pvc-1" : Expander.NodeExpand failed to expand the '
            'volume : rpc error: code = Internal desc = Could not resize volume "vol-0ab"',
            "Volume pvc-1 cannot be mounted on the node: the volume was enlarged, but its file system could not be.",
            "Ask an operator to repair the volume's file system on the node.",
            id="28",
        ),
        pytest.param(
            "FailedAttachVolume",
            'AttachVolume.Attach failed for volume "pvc-1" : CSINode node-1 does not contain driver ebs.csi.aws.com',
            "Volume pvc-1 cannot be attached to the node yet: the storage driver ebs.csi.aws.com does not run on the node.",
            "If it lasts, ask an operator.",
            id="25",
        ),
        pytest.param(
            "FailedMount",
            'MountVolume.SetUp failed for volume "nfs" : mount.nfs: access denied by server while mounting 10.2.0.5:/ds',
            "Volume nfs cannot be mounted on the node: the file server refuses access.",
            "let the node use what the file server exports",
            id="27",
        ),
    ],
)
def test_volume_fault_names_its_cause_and_remedy(reason: str, message: str, sentence: str, step: str) -> None:
    diagnosis = on_node(reason, message)
    assert (diagnosis.sentence, diagnosis.severity, diagnosis.who) == (sentence, "problem", "operator")
    assert step in diagnosis.next_step


@pytest.mark.parametrize(
    "driver", ["DRA driver {} is not registered", "plugin name {} not found in the list of registered DRA plugins"]
)
def test_missing_device_driver_is_named_for_operator(driver: str) -> None:  # 51
    message = f"Failed to prepare dynamic resources: {driver.format('gpu.nvidia.com')}"
    diagnosis = on_node("FailedPrepareDynamicResources", message)
    assert diagnosis.sentence == "The device driver gpu.nvidia.com does not run on the node."
    assert (diagnosis.severity, diagnosis.who) == ("problem", "operator")
    assert "launched again, this may get another node" in diagnosis.next_step


def test_silent_provisioner_is_named_after_binding_timeout() -> None:  # 31
    late = unplaced(NOT_IN_TIME, HOME, claim=pending(), claim_event=("ExternalProvisioning", PROVISIONER))
    assert late.sentence == (
        "The files of HOME have no volume yet (storage class gp3). A node was found, but the volume was not made in time."
    )
    assert (late.severity, late.who) == ("problem", "operator")
    assert late.next_step == "Ask an operator whether the provisioner ebs.csi.aws.com runs."
    unseen = unplaced(NOT_IN_TIME, HOME, knows_cluster=False)
    assert unseen.sentence == "The volume for the files of HOME is not ready yet."


def test_cloud_disk_quota_is_no_fault_of_claim() -> None:  # 29
    full = unplaced(UNBOUND, HOME, claim=pending(), claim_event=("ProvisioningFailed", PROVISIONING + RUNS_OUT))
    assert full.sentence.endswith(f"(storage class gp3). The quota for disks is used up: {RUNS_OUT}")
    assert (full.who, full.next_step) == (
        "operator",
        "Ask an operator to raise the quota, or to delete disks that nobody needs.",
    )
    rate = "Error 403: Quota exceeded for quota metric 'Queries' and limit 'Queries per minute', rateLimitExceeded"
    busy = unplaced(UNBOUND, HOME, claim=pending(), claim_event=("ProvisioningFailed", PROVISIONING + rate))
    assert "Its storage driver says:" in busy.sentence


@pytest.mark.parametrize("minutes", [0.5, 12])
def test_deleted_claim_is_never_waited_for(minutes: float) -> None:  # 30
    diagnosis = unplaced(DELETED, HOME, claim=pending(deletionTimestamp=stamp(MOMENT)), minutes=minutes)
    assert diagnosis.sentence == "The files of HOME cannot be used: the volume claim home is being deleted."
    assert (diagnosis.severity, diagnosis.who) == ("problem", "admin")
    assert diagnosis.next_step.startswith("Its deletion cannot be undone: ask your admin for a new claim")
    unseen = unplaced(DELETED, HOME, knows_cluster=False)
    assert unseen.sentence == "The files of HOME cannot be used, because their claim is being deleted."


@pytest.mark.parametrize("knows_cluster", [True, False])
def test_refused_scratch_claim_shows_the_quota(*, knows_cluster: bool) -> None:  # 32
    event_of_pod = ("FailedBinding", NO_QUOTA)
    diagnosis = unplaced(NO_SCRATCH, SCRATCH, pod_events=[event_of_pod], knows_cluster=knows_cluster)
    assert diagnosis.sentence == (
        "The scratch volume scratch cannot be created. The quota “storage” of the namespace has too little left: "
        "950 GiB of 1 TiB of storage are in use and this takes 100 GiB of storage."
    )
    assert diagnosis.who == "admin"
    assert diagnosis.next_step.startswith("It starts when a volume claim of the namespace is deleted")
    made = unplaced("0/1 nodes are available: 1 Insufficient cpu.", SCRATCH, pod_events=[event_of_pod])
    assert "quota" not in made.sentence, "the claim was made since"


@pytest.mark.parametrize(
    ("refusal", "who", "words"),
    [
        pytest.param(
            HOOK_DOWN,
            "operator",
            "The cluster's webhook validate.kyverno.svc-fail has to allow it first, and could not be asked: it does not "
            "answer in time.",
            id="33",
        ),
        pytest.param(
            DENIED,
            "admin",
            "The cluster's rule validation.gatekeeper.sh forbids it: [allowed-repos] docker.io is not allowed.",
            id="34",
        ),
    ],
)
def test_refused_binding_is_no_lack_of_nodes(refusal: str, who: str, words: str) -> None:
    diagnosis = unplaced(BINDING + refusal, {})
    assert diagnosis.sentence == f"A node was found, but the API server did not bind this to it. {words}"
    assert (diagnosis.severity, diagnosis.who) == ("problem", who)
    unknown = unplaced(f"{BINDING}the node is odd", {})
    assert unknown.sentence.startswith("A node was found, but the scheduler could not give it to this: ")


@pytest.mark.parametrize(
    "message",
    ['pod "compute-grid/x": ResourceClaim not created yet',
     'waiting for dynamic resource allocation controller to create the resourceclaim "x-gpu"', ""],
)  # fmt: skip
def test_missing_claim_template_is_named(message: str) -> None:  # 52
    diagnosis = unplaced(message, DEVICES, pod_events=[("FailedResourceClaimCreation", NO_TEMPLATE)])
    assert diagnosis.sentence == "The namespace has no resource claim template “single-gpu”."
    assert (diagnosis.severity, diagnosis.who) == ("problem", "admin")
    assert diagnosis.next_step == "Ask your admin to create it, or to correct the tier."


def test_devices_in_use_are_waited_for() -> None:  # 50
    diagnosis = unplaced("0/2 nodes are available: 2 cannot allocate all claims.", DEVICES)
    assert diagnosis.sentence == "No node that has room for this has free devices for the resource claim gpu."
    assert (diagnosis.severity, diagnosis.who) == ("wait", "operator")
    assert diagnosis.next_step.startswith("Wait until devices become free")
