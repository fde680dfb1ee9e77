"""What is said of a node's second causes, of starts and sizes that wait, and in the words of its components.

Read `tests/golden/words-of-second-causes.txt`.
"""

from datetime import timedelta
from typing import Any

from grid.diagnosis.diagnosis import Diagnosis
from grid.kube.objects import Node
from tests.diagnosis.situations import ago, assert_answers_as_stored, ended, event_saying, explain
from tests.diagnosis.test_new_situations_of_nodes import CALICO, SANDBOX, TOO_LITTLE, running, unhealthy, waiting
from tests.support.builders import MOMENT, condition, container_status, decode, node, pod


def resized(reason: str, says: str, status: dict[str, Any]) -> Diagnosis:
    pending = condition("PodResizePending", "True", reason, says)
    limits = {"resources": {"limits": {"memory": "4Gi"}}}
    containers = [{"name": "run", "image": "lab:4", **limits}]
    return explain(
        pod("p", node="node-1", phase="Running", containers=containers, statuses=[status], conditions=[pending])
    )


def of_second_causes() -> dict[str, Diagnosis]:
    """What came later, and what stands beside it."""
    lost = container_status(state={"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown"}})
    over = {"reason": "DeadlineExceeded", "message": "Pod was active on the node longer than the specified deadline"}
    unpulled = event_saying("Failed", 'Failed to pull image "python:3.11": not found')
    too_long = pod(
        "p", node="node-1", phase="Failed", statuses=[lost], status=over, spec={"activeDeadlineSeconds": 600}
    )
    mount = event_saying(
        "FailedMount",
        'MountVolume.SetUp failed for volume "c" : failed to sync configmap cache: timed out',
        seconds=600,
    )
    sandbox = event_saying("FailedCreatePodSandBox", SANDBOX + CALICO, seconds=9) | {"type": "Warning"}
    root_ca = 'MountVolume.SetUp failed for volume "kube-api-access-x" : configmap "kube-root-ca.crt" not found'
    error = 'failed to "KillPodSandbox" for "8c" with KillPodSandboxError: "rpc error: code = Unknown desc = failed to destroy network for'
    killing = event_saying(
        "FailedKillPod", error + ' sandbox \\"ab\\": plugin type=\\"calico\\" failed (delete): Unauthorized"'
    )
    done = container_status(state=ended(0, "Completed", seconds=900))
    left = pod(
        "p", node="node-1", phase="Running", statuses=[done], deletionTimestamp=ago(700), deletionGracePeriodSeconds=30
    )
    return {
        "a timeout, and an image that is not there": explain(too_long, unpulled),
        "a timeout, and a lost container": explain(too_long),
        "a mount that failed once, and no sandbox since": waiting("ContainerCreating", "", mount, sandbox),
        "no sandbox, and a mount that fails since": waiting("ContainerCreating", "", sandbox, event_saying("FailedMount", root_ca)),
        "a network that is not cleaned up": explain(left, killing),
        "a program that is over, and a proxy that is not": explain(
            pod("p", node="node-1", phase="Running", statuses=[done, running("istio-proxy")])
        ),
        "evicted, whatever the dates say": explain(
            pod("p", node="node-1", phase="Failed", statuses=[container_status(state=ended(137, seconds=30))],
                conditions=[condition("DisruptionTarget", "True", "TerminationByKubelet", at=MOMENT - timedelta(seconds=5))],
                status={"reason": "Evicted", "message": "The node was low on resource: memory. Threshold quantity: 100Mi, "
                        "available: 90Mi. Container run was using 9Gi, request is 4Gi, has larger consumption of memory. "})
        ),
    }  # fmt: skip


def of_starts_that_take_long() -> dict[str, Diagnosis]:
    bad = condition("FrequentContainerdRestart", "True", "", "Found 7 matching logs", at=MOMENT - timedelta(hours=1))
    creating = pod(
        "p", node="node-1", statuses=[container_status(state={"waiting": {"reason": "ContainerCreating"}})],
        conditions=[condition("PodScheduled", "True", at=MOMENT - timedelta(minutes=6))],
    )  # fmt: skip
    return {
        "a start that takes long on a node in trouble": explain(creating, node=decode(node("node-1", conditions=[bad]), Node)),
        "a download that takes long": waiting(
            "ContainerCreating", "", event_saying("Pulling", 'Pulling image "python:3.11"', seconds=2700)
        ),
        "a setup step that takes long": explain(
            pod("p", node="node-1", spec={"initContainers": [{"name": "wait-for-db", "image": "a"}]},
                status={"initContainerStatuses": [
                    container_status("wait-for-db", state={"running": {"startedAt": ago(1500)}})]})
        ),
        "a worker that waits for the head of its cluster": explain(
            pod("p", node="node-1", labels={"ray.io/cluster": "rc"},
                spec={"initContainers": [{"name": "wait-gcs-ready", "image": "a"}]},
                status={"initContainerStatuses": [
                    container_status("wait-gcs-ready", state={"running": {"startedAt": ago(590)}})]})
        ),
    }  # fmt: skip


def of_sizes() -> dict[str, Diagnosis]:
    full = "Node didn't have enough resource: memory, requested: 17179869184, used: 60129542144, capacity: 67119476736"
    killed = container_status(
        restarts=3, state={"waiting": {"reason": "CrashLoopBackOff"}}, lastState=ended(137, "OOMKilled")
    )
    return {
        "a size that waits": resized("Deferred", full, running()),
        "want of memory, and a size that waits": resized("Deferred", full, killed),
        "a size that the node never gives": resized("Infeasible", "Resize is infeasible for static CPU policy", running()),
        "a size that the runtime cannot set": explain(
            pod("p", node="node-1", phase="Running", statuses=[running()], conditions=[
                condition("PodResizeInProgress", "True", "Error", "failed to update resources: cpu.max: invalid argument")])
        ),
    }  # fmt: skip


def of_words_of_components() -> dict[str, Diagnosis]:
    """What each component says itself."""
    hook = "Exec lifecycle hook ([cp]) for Container \"run\" failed - error: command 'cp' exited with 1: cp: Permission denied"
    runc = "runc create failed: unable to start container process: error during container init: "
    starts = {
        "a folder on a file": f'{runc}error mounting "/var/lib/kubelet/a" to rootfs at "/etc/app.yaml": mount src=a: not a directory',
        "a folder that nobody can make": f"{runc}mkdir /home/jovyan/work: permission denied: unknown",
        "a folder that an image volume lacks": 'failed to stat sub path "weights/7b" of image volume "models:3": no such file',
        "a quote that is cut": f'container create failed: level=error msg="{runc}write /proc/self/attr/keycreate: invalid argument"',
    }
    probes = {
        "a probe's command is not in the image": 'errored and resulted in unknown state: exec: "curl": executable file not found in $PATH',
        "a probe without TLS": 'failed: Get "http://10.0.0.7:8888/": malformed HTTP response "\\x15\\x03"',
        "a probe by gRPC": "failed: rpc error: code = Unimplemented desc = unknown service grpc.health.v1.Health",
        "a probe's own words": "failed: cat: /tmp/healthy: No such file or directory",
    }
    return {
        "a hook that fails": waiting("PostStartHookError", hook),
        "no sandbox for so little memory": waiting(
            "ContainerCreating", "", event_saying("FailedCreatePodSandBox", SANDBOX + runc + TOO_LITTLE) | {"type": "Warning"}
        ),
        "a system call that is forbidden": explain(
            pod("p", node="node-1", phase="Failed", statuses=[container_status(state=ended(159))])
        ),
        **{f"no start: {why}": waiting("CreateContainerError", text) for why, text in starts.items()},
        **{why: unhealthy(says) for why, says in probes.items()},
    }  # fmt: skip


def test_second_causes_of_nodes_are_told_as_stored() -> None:
    answers = of_second_causes() | of_starts_that_take_long() | of_sizes() | of_words_of_components()
    assert_answers_as_stored("words-of-second-causes", answers.items())
