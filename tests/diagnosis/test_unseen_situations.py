"""What is said in situations that an expert invented before reading any rule, and that were explained wrongly or poorly.

The texts are those of the kubelet, of containerd and cri-o, of registries, storage drivers and schedulers of gangs. Read
`tests/golden/words-of-unseen-situations.txt`.
"""

from datetime import timedelta
from typing import Any

from grid.core.labels import KEYS
from grid.diagnosis.diagnosis import Diagnosis
from grid.kube.objects import Node
from tests.diagnosis.placement.worlds import surroundings
from tests.diagnosis.situations import assert_answers_as_stored, ended, event_saying, explain
from tests.diagnosis.test_sixty_storage import FAILS, HOME, NOT_IN_TIME, UNBOUND, on_node, pending, unplaced
from tests.support.builders import MOMENT, condition, container_status, decode, node, pod

RUNC = "failed to create containerd task: runc create failed: unable to start container process: "
NO_START = {
    "no memory for a cgroup": f"{RUNC}mkdir /sys/fs/cgroup/memory/kubepods/pod1: cannot allocate memory",
    "no disk for a container": "failed to create containerd container: mkdir /var/lib/containerd/1: no space left on device",
    "user with a name who is not in the image": "unable to find user jovyan: no matching entries in passwd file",
    "command that is not in the image, by cri-o": "executable file `foo` not found in $PATH: No such file or directory",
    "AppArmor profile": f"{RUNC}unable to apply apparmor profile: no such file",
}  # fmt: skip
PULLS = {
    "account of the node, by ECR": "403 Forbidden: User: arn:aws:sts::1:assumed-role/node is not authorized to perform: ecr:BatchGetImage",
    "address of the node": "403 Forbidden: client with IP '20.1.2.3' is not allowed access",
}  # fmt: skip
INOTIFY = "Error: failed to create fsnotify watcher: too many open files"
PORT = "panic: listen tcp :9400: bind: address already in use"
SOURCE = "requested volume size 10737418240 is less than the size 107374182400 for the source snapshot before-churn"
GONE = "Could not create volume \"pvc-1\": failed to get an available volume in EC2: InvalidVolume.NotFound: no volume 'vol-1'"
NO_SECRET = ("FailedMount", 'MountVolume.SetUp failed for volume "token" : secret "token" not found')
ELSEWHERE = ("FailedAttachVolume", 'Multi-Attach error for volume "pvc-1" Volume is already used by pod(s) workspace-7')
SILENT = (
    "FailedMount",
    'MountVolume.SetUp failed for volume "home" : mount failed: exit status 32\nOutput: mount.nfs: Connection refused',
)
BUS_ERROR = "RuntimeError: DataLoader worker (pid 71) is killed by signal: Bus error."
HOOK = "Exec lifecycle hook ([/opt/setup.sh]) for Container \"run\" failed - error: command '/opt/setup.sh' exited with 126"


def waits(reason: str, message: str = "", **more: Any) -> dict[str, Any]:
    return container_status(state={"waiting": {"reason": reason, "message": message}}, **more)


def of(*statuses: dict[str, Any], events: Any = (), **more: Any) -> Diagnosis:
    images = {"run": "docker.io/acme/lab:4", "proxy": "ghcr.io/acme/proxy:9"}
    limits = {"limits": {"memory": "4Gi"}}
    containers = [{"name": each["name"], "image": images[each["name"]], "resources": limits} for each in statuses]
    return explain(pod("p", node="node-1", containers=containers, statuses=list(statuses), **more), *events)


def about(name: str, message: str) -> dict[str, Any]:
    return event_saying("Failed", message) | {"involvedObject": {"fieldPath": f"spec.containers{{{name}}}"}}


def unmounted(*warnings: tuple[tuple[str, str], float]) -> Diagnosis:
    """Each warning with how many seconds ago it was last said, oldest first."""
    events = [event_saying(*each, seconds=seconds) for each, seconds in warnings]
    return of(waits("ContainerCreating"), events=events)


def of_shared_memory(*, is_ours: bool, exit_code: int = 1, message: str = BUS_ERROR) -> Diagnosis:
    labels = {KEYS.execution: "e1"} if is_ours else {}
    return of(container_status(state=ended(exit_code, message=message)), phase="Failed", labels=labels)


def crashing(name: str, end: dict[str, Any]) -> dict[str, Any]:
    return waits("CrashLoopBackOff", restarts=6, lastState=end) | {"name": name}


def of_one_cause() -> dict[str, Diagnosis]:
    no_namespaces = 'RuntimeClass handler "nvidia" does not support user namespaces'
    no_token = 'MountVolume.SetUp failed for volume "token" : failed to fetch token: no relationship found between node and this'
    failed = 'failed to provision volume with StorageClass "gp3": '
    hook = event_saying("FailedPostStartHook", HOOK, seconds=6)
    sandbox = event_saying("FailedCreatePodSandBox", no_namespaces) | {"type": "Warning"}
    again = container_status(ready=True, restarts=1, lastState=ended(137))
    return {
        **{name: of(waits("CreateContainerError", message)) for name, message in NO_START.items()},
        **{
            name: of(waits("ImagePullBackOff"), events=[event_saying("Failed", f"Failed to pull image: {message}")])
            for name, message in PULLS.items()
        },
        "inotify": of(container_status(state=ended(1, message=INOTIFY)), phase="Failed"),
        "user namespaces": of(waits("ContainerCreating"), events=[sandbox]),
        "token of the account": on_node("FailedMount", no_token),
        "gang of Kubernetes": unplaced("waiting for minCount pods from a gang to appear in scheduling queue", {}),
        "claim smaller than its snapshot": unplaced(
            UNBOUND, HOME, claim=pending(), claim_event=(FAILS, failed + SOURCE)
        ),
        "key of the disks": unplaced(NOT_IN_TIME, HOME, claim=pending(), claim_event=(FAILS, failed + GONE)),
        "hook after the start": of(crashing("run", ended(137)), events=[hook]),
        "hook after the start, running again": of(again, events=[hook]),
        "shared memory of our own": of_shared_memory(is_ours=True),
        "shared memory of a foreign pod": of_shared_memory(is_ours=False),
        "shared memory of a foreign pod, by the exit code": of_shared_memory(is_ours=False, exit_code=135, message=""),
        "shared memory of our own, by the exit code": of_shared_memory(is_ours=True, exit_code=135, message=""),
    }


def of_two_causes() -> dict[str, Diagnosis]:
    limit = 'Failed to pull image "docker.io/acme/lab:4": 429 Too Many Requests - toomanyrequests: pull rate limit'
    platform = 'Failed to pull image "ghcr.io/acme/proxy:9": no match for platform in manifest: not found'
    waiting = (waits("ImagePullBackOff"), waits("ImagePullBackOff") | {"name": "proxy"})
    pulls = [about("run", limit), about("proxy", platform)]
    selecting, fast = HOME | {"nodeSelector": {"gpu": "h200"}}, pending() | {"spec": {"storageClassName": "fast"}}
    no_secret = waits("CreateContainerConfigError", 'secret "wandb" not found')
    crashes = crashing("run", ended(137, "OOMKilled")), crashing("proxy", ended(1, message=PORT))
    return {
        "a Secret and a volume on another node": unmounted((ELSEWHERE, 480), (NO_SECRET, 30)),
        "a volume on another node, and a Secret before": unmounted((NO_SECRET, 60), (ELSEWHERE, 30)),
        "a Secret and a file server": unmounted((NO_SECRET, 90), (SILENT, 30)),
        "a file server, and long before it a Secret": unmounted((NO_SECRET, 480), (SILENT, 30)),
        "two images": of(*waiting, events=pulls),
        "a Secret and an image": of(no_secret, waiting[1], events=pulls[1:]),
        "a storage class and a label of nodes": unplaced(UNBOUND, selecting, claim=fast),
        "memory and a port": of(*crashes),
        "memory beside a healthy container": of(crashes[0], container_status("proxy", ready=True)),
    }


def on_bad_node(
    kind: str, status: str, says: str, state: dict[str, Any], phase: str = "Running", age: int = 0
) -> Diagnosis:
    bad = condition(kind, status, message=says, at=MOMENT - timedelta(seconds=age))
    trouble = decode(node("node-1", conditions=[bad]), Node)
    return explain(pod("p", node="node-1", phase=phase, statuses=[container_status(state=state)]), node=trouble)


def failing_claim(says: str) -> Diagnosis:
    failed_event = (
        FAILS,
        f'failed to provision volume with StorageClass "gp3": rpc error: code = Internal desc = {says}',
    )
    return unplaced(UNBOUND, HOME, claim=pending(), claim_event=failed_event)


def failed(reason: str, message: str) -> Diagnosis:
    return explain(pod("p", node="node-1", phase="Failed", status={"reason": reason, "message": message}))


def among_full(groups: str) -> Diagnosis:
    """On the only node, whose cores are taken; the autoscaler says this of its groups."""
    refused = condition("PodScheduled", "False", "Unschedulable", "0/1 nodes are available: 1 Insufficient cpu.")
    waiting = pod("p", conditions=[refused], requests={"cpu": "3"}, created=MOMENT - timedelta(minutes=9))
    scheduling = surroundings([node("node-1")], [pod("x", node="node-1", requests={"cpu": "2"}, ready=True)], [])
    says = event_saying("NotTriggerScaleUp", f"pod didn't trigger scale-up: {groups}")
    return explain(waiting, says, scheduling=scheduling)


def refused_by(complaints: str) -> Diagnosis:
    """While the nodes are not known."""
    refused = condition("PodScheduled", "False", "Unschedulable", f"0/5 nodes are available: {complaints}.")
    return explain(pod("p", conditions=[refused], spec=HOME, created=MOMENT - timedelta(minutes=9)))


def of_nodes_and_services() -> dict[str, Diagnosis]:
    probe = "Startup probe failed: dial tcp 10.0.0.7:8000: connect: connection refused"
    killed = [event_saying("Killing", "Container run failed startup probe, will be restarted", seconds=6)]
    slow = ended(137, message="HfHubHTTPError: 429 Client Error: Too Many Requests for url")
    unseen, gates = ended(255, "Unknown"), [{"name": "kueue.x-k8s.io/admission"}]
    kueue = {"reportingComponent": "kueue-admission"}
    short = event_saying("Pending", "insufficient unused quota in flavor a100, 4 more needed") | kueue
    made = event_saying("CreatedWorkload", "Created Workload: grid/pod-p") | kueue
    fell = "AcceleratedHardwareReady", "False", "NVRM: Xid: 79, GPU has fallen off the bus."
    lustre = 'MountVolume.SetUp failed for volume "fsx" : mount.lustre: mount at /x failed: Input/output error\nIs the MGS running?'
    return {
        "probe of a program that a service makes wait": of(
            crashing("run", slow), events=[event_saying("Unhealthy", probe, seconds=7), *killed]
        ),
        "the same, running again": of(container_status(ready=True, restarts=1, lastState=slow), events=killed),
        "end that nobody saw, running again": of(container_status(ready=True, restarts=1, lastState=unseen)),
        "end that nobody saw": of(container_status(state=unseen), phase="Failed"),
        "node with a broken GPU": on_bad_node(*fell, ended(1), "Failed"),
        "node short of disk": on_bad_node("DiskPressure", "True", "", ended(1)),
        "node short of disk after the end": on_bad_node("DiskPressure", "True", "", ended(1), "Failed"),
        "node short of disk, and no problem": on_bad_node("DiskPressure", "True", "", ended(0)),
        "node with a condition that nobody knows": on_bad_node("VendorTuned", "True", "all is well", ended(1)),
        "queue of Kueue": explain(pod("p", spec={"schedulingGates": gates}), short, made),
        "Lustre": on_node("FailedMount", lustre),
        "ports and cordoned nodes": refused_by("2 node(s) didn't have free ports, 3 node(s) were unschedulable"),
        "taints and other pods": refused_by(
            "2 node(s) had untolerated taint {a: b}, 3 node(s) didn't match pod affinity rules"
        ),
        "GPUs and a zone": refused_by("2 Insufficient nvidia.com/gpu, 3 node(s) had volume node affinity conflict"),
        "process killed beside the program": of(
            container_status(state=ended(1, message="traceback : Signal 9 (SIGKILL) received by PID 78")),
            phase="Failed",
        ),
    }


def of_accounts_and_limits() -> dict[str, Diagnosis]:
    right = "UnauthorizedOperation: x is not authorized to perform: ec2:CreateVolume"
    bucket = 'MountVolume.SetUp failed for volume "s3" : desc = Could not mount "data" at "/var/lib/kubelet/1/mount": Caused by: '
    plugin = "due to device plugin GetPreferredAllocation rpc failed with err: rpc error: code = Unknown desc = nvml"
    inodes = "The node was low on resource: inodes. "
    used = f"{inodes}Container run was using 412k, request is 0, has larger consumption of inodes."
    probe = event_saying("Killing", "Container proxy failed liveness probe, will be restarted", seconds=6)
    short = ("MemoryPressure", "True", "kubelet has insufficient memory available")
    before: dict[str, Any] = {"phase": "Failed", "age": 60}
    return {
        "right of the storage driver": failing_claim(right),
        "credentials of the storage driver": failing_claim("failed to refresh cached credentials, no EC2 IMDS role found"),
        "credentials of a bucket": on_node("FailedMount", f"{bucket}2: No signing credentials available, see logs"),
        "right of a bucket": on_node("FailedMount", f"{bucket}1: AccessDenied"),
        "lost GPU": failed("UnexpectedAdmissionError", f"Allocate failed {plugin}: GPU is lost, which is unexpected"),
        "share of a GPU": failed("UnexpectedAdmissionError", f"Allocate failed {plugin}: maximum request size for shared resources is 1"),
        "device that is not registered": failed("UnexpectedAdmissionError", "can't allocate unregistered device a/b, which is unexpected"),
        "inodes": failed("Evicted", inodes),
        "inodes of the program": failed("Evicted", used),
        "open files of the node": of(waits("CreateContainerError", f"{RUNC}cannot create inotify fd: too many open files")),
        "disk of the node": of(waits("CreateContainerError", "mkdir /var/lib/containerd/new-1932: read-only file system")),
        "crash, and a probe of another": of(crashing("run", ended(1)), crashing("proxy", ended(137)), events=[probe]),
        "killed on a node short of memory": on_bad_node(*short, ended(137), **before),
        "killed on a node short of memory since": on_bad_node(*short, ended(137), "Failed"),
        "killed at its own limit there": on_bad_node(*short, ended(137, "OOMKilled"), **before),
        "ended with an error there": on_bad_node(*short, ended(1), **before),
        "full nodes, group at its maximum": among_full("1 Insufficient cpu, 1 max node group size reached"),
        "full nodes, no node came": among_full("1 in backoff after failed scale-up, 2 node(s) didn't match Pod's node affinity/selector"),
        "full nodes, none to add": among_full("1 Insufficient cpu"),
    }  # fmt: skip


def of_queues_and_groups() -> dict[str, Diagnosis]:
    gates, claims = [{"name": "kueue.x-k8s.io/topology"}], [{"name": "gpu", "resourceClaimName": "shared"}]
    group = "pod group is not ready, 3 Pending, 3 minAvailable. Origin reason is p-2: 0/5 nodes are unavailable: 5 Insufficient cpu"
    rejected = "2 Insufficient memory. PodGroup grid/train gets rejected due to Pod train-3 is unschedulable even after PostFilter"
    fargate = "Pod not supported on Fargate: volumes not supported: PVC home bound to invalid PV pvc-1"
    consuming = "Unschedulable pod ignored in scale-up loop, because it's consuming ProvisioningRequest grid/h100 that "
    states = "does not exist. Consider creating pods after it.", "is in Accepted state."
    unlabeled = "2 node(s) didn't match pod topology spread constraints (missing required label)"
    return {
        "Kueue has admitted it": explain(pod("p", spec={"schedulingGates": gates})),
        "claim in use": unplaced("0/2 nodes are available: resourceclaim in use.", {"resourceClaims": claims}),
        "group of Volcano": unplaced(group, {"schedulerName": "volcano"}, knows_cluster=False),
        "group that is rejected": refused_by(rejected),
        "Fargate": unplaced(fargate, {"schedulerName": "fargate-scheduler"}),
        "memory and nodes without a label": refused_by(f"3 Insufficient memory, {unlabeled}"),
        "groups of nodes with a taint": among_full(
            "1 max node group size reached, 2 node(s) had untolerated taint {dedicated: infra}, 1 in backoff after failed scale-up"
        ),
        **{
            f"ProvisioningRequest that {state}": unplaced(
                "0/1 nodes are available: 1 Insufficient cpu.",
                {},
                pod_events=[("", consuming + state)],
                knows_cluster=knows,
            )
            for state, knows in zip(states, (True, False), strict=True)
        },
    }


def of_what_else_is_missing() -> dict[str, Diagnosis]:
    secret = "Unable to retrieve some image pull secrets (regcred); attempting to pull the image may not succeed."
    denied = 'Failed to pull image "docker.io/acme/lab:4": authorization failed: no basic auth credentials'
    absent = 'Failed to pull image "docker.io/acme/lab:4": manifest unknown'
    lost = ended(1, message="OSError: [Errno 107] Transport endpoint is not connected: '/data'")

    def failing_after(sidecar: dict[str, Any]) -> Diagnosis:
        fuse = [{"name": "fuse", "restartPolicy": "Always", "resources": {"limits": {"memory": "256Mi"}}}]
        init = {"initContainerStatuses": [container_status("fuse", **sidecar)]}
        return of(container_status(state=lost), phase="Failed", spec={"initContainers": fuse}, status=init)

    return {
        f"pull secret: {name}": of(
            waits("ImagePullBackOff"),
            events=[event_saying("FailedToRetrieveImagePullSecret", secret), event_saying("Failed", failure)],
        )
        for name, failure in {"no access": denied, "no image": absent}.items()
    } | {
        "sidecar without memory, then the program": failing_after({"state": ended(137, "OOMKilled", seconds=40)}),
        "sidecar restarted, then the program": failing_after({"ready": True, "lastState": ended(1, seconds=40)}),
        "sidecar long before the program": failing_after({"ready": True, "lastState": ended(1, seconds=400)}),
        "sidecar after the program": failing_after({"state": ended(137, seconds=2)}),
    }


def test_unseen_situations_are_told_as_stored() -> None:
    answers = of_one_cause() | of_two_causes() | of_nodes_and_services() | of_accounts_and_limits()
    assert_answers_as_stored("words-of-unseen-situations", answers.items())


def test_groups_queues_and_what_else_is_missing_are_told_as_stored() -> None:
    answers = of_queues_and_groups() | of_what_else_is_missing()
    assert_answers_as_stored("words-of-groups-and-queues", answers.items())
