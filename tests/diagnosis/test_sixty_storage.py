"""What an expert found wrong in the explanations of volumes, devices and refused bindings; the messages are Kubernetes' own.

Read `tests/golden/words-of-storage-and-devices.txt`.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from grid.diagnosis.diagnosis import Diagnosis
from grid.diagnosis.pods import explain_pod
from grid.kube.objects import Event, Pod
from tests.diagnosis.placement.worlds import surroundings
from tests.diagnosis.situations import Case, assert_answers_as_stored, event_saying, on_a_node
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
FAILED = 'failed to provision volume with StorageClass "gp3": '
LATE = "rpc error: code = DeadlineExceeded desc = context deadline exceeded"
STILL_PENDING = "rpc error: code = Aborted desc = an operation with the given Volume ID pvc-1 already exists"
AGGREGATE_FULL = "aggregate aggr1_node1 does not have enough space, needs 2199023255552, has 912680550400"
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
    earlier: Sequence[tuple[str, str]] = (),
    knows_cluster: bool = True,
    minutes: float = 12,
) -> Diagnosis:
    waiting = pod("x", conditions=[condition("PodScheduled", "False", "Unschedulable", message)], spec=spec)
    events = [decode(event_saying(*each), Event) for each in pod_events]
    about_claim = [decode(event_saying(*each), Event) for each in (*earlier, claim_event) if each]
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


SETUP = 'MountVolume.SetUp failed for volume "pvc-1" : '
FSCK = (
    "MountVolume.MountDevice failed for volume \"pvc-1\" : rpc error: code = Internal desc = 'fsck' found errors on "
    "device /dev/nvme1n1 but could not correct them: UNEXPECTED INCONSISTENCY; RUN fsck MANUALLY."
)
EXPANDING = (
    'MountVolume.Setup failed while expanding volume for volume "pvc-1" : Expander.NodeExpand failed to expand the '
    'volume : rpc error: code = Internal desc = Could not resize volume "vol-0ab"'
)
NO_CSI = 'AttachVolume.Attach failed for volume "pvc-1" : CSINode node-1 does not contain driver ebs.csi.aws.com'
NO_DISK = "googleapi: Error 404: The resource 'projects/p/zones/z/disks/pvc-1' was not found, notFound"
MACHINE = "rpc error: code = InvalidArgument desc = googleapi: Error 400: pd-ssd disk type cannot be used by c4-standard-8 machine type."
POLICY = 'RawError: {"error":{"code":"RequestDisallowedByPolicy","message":"The disk was disallowed by policy."}}'
ACCESS_POINTS = (
    "AccessPointLimitExceeded: You have reached the maximum number of access points (1000) allowed per file system."
)
UNPREPARED = "Failed to prepare dynamic resources: "
RATE = "Error 403: Quota exceeded for quota metric 'Queries' and limit 'Queries per minute', rateLimitExceeded"
FAILS = "ProvisioningFailed"
NO_CPU = "0/1 nodes are available: 1 Insufficient cpu."
NO_CONTROLLER = 'waiting for dynamic resource allocation controller to create the resourceclaim "x-gpu"'
REFUSED_SCRATCH, REFUSED_DEVICES = ("FailedBinding", NO_QUOTA), ("FailedResourceClaimCreation", NO_TEMPLATE)


def situations() -> dict[str, Diagnosis]:
    """The numbers are the expert's."""
    return {
        "26 file system damaged": on_node("FailedMount", FSCK),
        "26 file system damaged, XFS": on_node(
            "FailedMount", f"{SETUP}mount(2) system call failed: Structure needs cleaning."
        ),
        "28 file system not enlarged": on_node("FailedMount", EXPANDING),
        "25 storage driver not on the node": on_node("FailedAttachVolume", NO_CSI),
        "disk deleted": on_node("FailedAttachVolume", f'AttachVolume.Attach failed for volume "pvc-1" : {NO_DISK}'),
        "disk of another kind": on_node(
            "FailedAttachVolume", f'AttachVolume.Attach failed for volume "pvc-1" : {MACHINE}'
        ),
        "27 file server refuses": on_node(
            "FailedMount", f"{SETUP}mount.nfs: access denied by server while mounting 10.2.0.5:/ds"
        ),
        "51 device driver not registered": on_node(
            "FailedPrepareDynamicResources", f"{UNPREPARED}DRA driver gpu.nvidia.com is not registered"
        ),
        "51 device driver not in the list": on_node(
            "FailedPrepareDynamicResources",
            f"{UNPREPARED}plugin name gpu.nvidia.com not found in the list of registered DRA plugins",
        ),
        "31 provisioner silent": unplaced(
            NOT_IN_TIME, HOME, claim=pending(), claim_event=("ExternalProvisioning", PROVISIONER)
        ),
        "31 provisioner silent, cluster not read": unplaced(NOT_IN_TIME, HOME, knows_cluster=False),
        "29 quota of disks": unplaced(UNBOUND, HOME, claim=pending(), claim_event=(FAILS, PROVISIONING + RUNS_OUT)),
        "29 not a quota of disks": unplaced(UNBOUND, HOME, claim=pending(), claim_event=(FAILS, PROVISIONING + RATE)),
        "30 claim deleted, a moment ago": unplaced(
            DELETED, HOME, claim=pending(deletionTimestamp=stamp(MOMENT)), minutes=0.5
        ),
        "30 claim deleted": unplaced(DELETED, HOME, claim=pending(deletionTimestamp=stamp(MOMENT))),
        "30 claim deleted, cluster not read": unplaced(DELETED, HOME, knows_cluster=False),
        "32 scratch claim refused": unplaced(NO_SCRATCH, SCRATCH, pod_events=[REFUSED_SCRATCH]),
        "32 scratch claim refused, cluster not read": unplaced(
            NO_SCRATCH, SCRATCH, pod_events=[REFUSED_SCRATCH], knows_cluster=False
        ),
        "32 scratch claim made since": unplaced(NO_CPU, SCRATCH, pod_events=[REFUSED_SCRATCH]),
        "33 binding not asked for": unplaced(BINDING + HOOK_DOWN, {}),
        "34 binding denied": unplaced(BINDING + DENIED, {}),
        "34 binding failed for an unknown reason": unplaced(f"{BINDING}the node is odd", {}),
        "52 claim template missing": unplaced(
            'pod "compute-grid/x": ResourceClaim not created yet', DEVICES, pod_events=[REFUSED_DEVICES]
        ),
        "52 claim template missing, to another message": unplaced(NO_CONTROLLER, DEVICES, pod_events=[REFUSED_DEVICES]),
        "52 claim template missing, without a message": unplaced("", DEVICES, pod_events=[REFUSED_DEVICES]),
        "50 devices in use": unplaced("0/2 nodes are available: 2 cannot allocate all claims.", DEVICES),
    }


def test_faults_of_storage_and_devices_are_told_as_stored() -> None:
    assert_answers_as_stored("words-of-storage-and-devices", situations().items())


def test_provisioners_cause_is_said_whatever_came_after() -> None:
    late, full = (FAILS, FAILED + LATE), (FAILS, FAILED + AGGREGATE_FULL)
    quota, no_class = (FAILS, PROVISIONING + RUNS_OUT), (FAILS, 'storageclass.storage.k8s.io "gp3" not found')
    told_since = {
        "no room, and it waits again": (full, ("ExternalProvisioning", PROVISIONER)),
        "a timeout, and its consequence": (late, (FAILS, FAILED + STILL_PENDING)),
        "a quota, and a timeout since": (quota, late),
        "a class that was missing, and another cause since": (
            no_class,
            (FAILS, FAILED + "rpc error: code = Internal desc = no such pool"),
        ),
        "a timeout, and a policy of the cloud since": (late, (FAILS, FAILED + POLICY)),
        "a timeout, and a limit of the file system since": (late, (FAILS, FAILED + ACCESS_POINTS)),
    }
    answers = {
        name: unplaced(UNBOUND, HOME, claim=pending(), claim_event=newest, earlier=[first])
        for name, (first, newest) in told_since.items()
    }
    assert_answers_as_stored("words-of-provisioners", answers.items())
