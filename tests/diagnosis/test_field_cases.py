"""What a person is told in situations that were reported from the field: read `tests/golden/words-of-field-cases.txt` from top to bottom.

Each stands for a kind of fault. Sources: the kubelet's and the runtimes' own texts (kubernetes/kubernetes issues 104107, 104454, 116042 and
131530; opencontainers/runc pull 2812), and what bash, env and Go print.
"""

from typing import Any

import pytest

from dashboard.logs.viewmodels.log_lines import rows_of
from grid.diagnosis.logfindings import finding_of, without_prefix
from grid.diagnosis.loglevels import level_of
from grid.diagnosis.pods import explain_end, explain_pod
from grid.kube.objects import Pod
from tests.diagnosis.situations import Case, ago, assert_told_as_stored, ended, event_saying, on_a_node
from tests.support.builders import MOMENT, condition, decode, pod


def waits(reason: str, message: str = "", **more: Any) -> dict[str, Any]:
    return on_a_node({"waiting": {"reason": reason, "message": message}}, **more)


def over(phase: str, state: dict[str, Any], **meta: Any) -> dict[str, Any]:
    """A pod that has ended."""
    answer = on_a_node(state)
    answer["status"]["phase"] = phase
    answer["metadata"] |= meta
    return answer


def ready_until(seconds: float) -> dict[str, Any]:
    """A program that has run for an hour and stopped being ready some seconds ago."""
    answer = on_a_node({"running": {"startedAt": ago(3600)}}, started=True)
    answer["status"]["conditions"] = [{**condition("Ready", "False"), "lastTransitionTime": ago(seconds)}]
    return answer


def rejected(reason: str, message: str) -> dict[str, Any]:
    """A pod that its node did not take."""
    return pod("p", node="node-1", phase="Failed", status={"reason": reason, "message": f"Pod was rejected: {message}"})


def out_of_time(state: dict[str, Any]) -> dict[str, Any]:
    """A pod that Kubernetes ended at the end of its timeout of a minute."""
    answer = on_a_node(state)
    answer["spec"]["activeDeadlineSeconds"] = 60
    answer["status"] |= {
        "phase": "Failed",
        "reason": "DeadlineExceeded",
        "message": "Pod was active on the node longer than the specified deadline",
    }
    return answer


def drained() -> dict[str, Any]:
    answer = over("Succeeded", ended(0, "Completed"))
    answer["status"]["conditions"] = [
        {**condition("DisruptionTarget", "True", "EvictionByEvictionAPI"), "lastTransitionTime": ago(30)}
    ]
    return answer


NO_DRIVER = (
    "failed to create containerd task: OCI runtime create failed: runc create failed: error running prestart hook: "
    "nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown"
)
NO_HANDLER = (
    'Failed to create pod sandbox: rpc error: failed to get sandbox runtime: no runtime for "kata" is configured'
)
NO_ADDRESS = 'Failed to create pod sandbox: plugin type="aws-cni" failed (add): add cmd: failed to assign an IP address to container'
UNHEALTHY = "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices nvidia.com/gpu, which is unexpected"
CANNOT_VERIFY = (
    "container has runAsNonRoot and image has non-numeric user (analyst), "
    'cannot verify user is non-root (pod: "p", container: run)'
)
TOO_SMALL = (
    "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: "
    "unable to start container process: container init was OOM-killed (memory limit too low?): unknown"
)
NO_NETWORK = (
    "network is not ready: container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady "
    "message:Network plugin returns error: cni plugin not initialized"
)
COLOURED = "\x1b[31mTraceback\x1b[0m (most recent call last):\n\r 10%|#\r100%|####\n\x1b[1mValueError\x1b[0m: bad"
PROXY = 'failed to do request: Head "https://reg.test/v2/lab/train/manifests/3": Proxy Authentication Required'
NO_PROXY = 'failed to do request: Head "https://reg.test/v2/lab": proxyconnect tcp: dial tcp 10.0.0.3:3128: connect: connection refused'
WINDOWS_ENDS = "/bin/sh: 1: ./train.sh: /bin/bash^M: bad interpreter: No such file or directory"
NO_INTERPRETER = "bash: ./plot.R: /usr/bin/Rscript: bad interpreter: No such file or directory"
FAILED_AGAIN = {"lastState": ended(0, "Completed"), "restarts": 6}

CASES = [
    Case("a child was killed for its memory, and the program succeeded", over("Succeeded", ended(0, "OOMKilled"))),
    Case(
        "the node found the container no more",
        over("Failed", ended(137, "ContainerStatusUnknown", message="The container could not be located")),
    ),
    Case(
        "the node found the container no more and started another",
        waits("CrashLoopBackOff", "back-off 5m0s", restarts=1, lastState=ended(137, "ContainerStatusUnknown")),
    ),
    Case("the program of an app ends well again and again", waits("CrashLoopBackOff", "back-off 5m0s", **FAILED_AGAIN)),
    Case("the image names its user in words", waits("CreateContainerConfigError", CANNOT_VERIFY)),
    Case("not even the start fits the memory limit", waits("RunContainerError", TOO_SMALL)),
    Case("a script with the line ends of Windows", over("Failed", ended(126, message=WINDOWS_ENDS))),
    Case(
        "a script for env with the line ends of Windows",
        over("Failed", ended(127, message="env: 'python3\\r': No such file or directory")),
    ),
    Case("a script whose interpreter is missing", over("Failed", ended(126, message=NO_INTERPRETER))),
    Case("colours and a progress bar in the end of the log", over("Failed", ended(1, message=COLOURED))),
    Case("the node's proxy wants a login", waits("ErrImagePull", PROXY)),
    Case("the node's proxy is down", waits("ErrImagePull", NO_PROXY)),
    Case(
        "the node's network is not ready",
        waits("ContainerCreating"),
        [event_saying("Scheduled", "assigned", seconds=1200), event_saying("NetworkNotReady", NO_NETWORK)],
    ),
    Case(
        "a waiting reason of a hook",
        waits("PostStartHookError", "Exec lifecycle hook ([/bin/prepare]) failed: exit status 3"),
    ),
    Case(
        "a waiting reason that no rule knows",
        waits("CreatePodSandboxError", "failed to reserve sandbox name p_lab: name is reserved"),
    ),
    Case("a waiting reason without a message", waits("FlavourUnknown")),
    Case(
        "a warning that no rule knows, and a newer one that only sums up",
        waits("ContainerCreating"),
        [
            event_saying("Scheduled", "assigned", seconds=90),
            event_saying(
                "FailedCreatePodContainer", "unable to ensure pod container exists: failed to create cgroup", seconds=60
            ),
            event_saying("FailedSync", "error determining status: rpc error", seconds=5),
        ],
    ),
    Case(
        "a warning of before the container was on its way",
        waits("ContainerCreating"),
        [
            event_saying("NetworkNotReady", NO_NETWORK, seconds=90),
            event_saying("Pulling", 'Pulling image "lab:4"', seconds=40),
        ],
    ),
    Case("not ready any more, since a moment", ready_until(20)),
    Case(
        "not ready any more, since a while",
        ready_until(400),
        [event_saying("Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503")],
    ),
    Case("the node's GPU driver is gone", waits("RunContainerError", NO_DRIVER)),
    Case(
        "the node lacks the runtime of a RuntimeClass",
        waits("ContainerCreating"),
        [event_saying("FailedCreatePodSandBox", NO_HANDLER)],
    ),
    Case(
        "the node has no address for another pod",
        waits("ContainerCreating"),
        [event_saying("FailedCreatePodSandBox", NO_ADDRESS)],
    ),
    Case("the node's devices do not work", rejected("UnexpectedAdmissionError", UNHEALTHY)),
    Case(
        "the node's cores and devices lie apart",
        rejected("TopologyAffinityError", "Resources cannot be allocated with Topology locality"),
    ),
    Case(
        "the timeout was over while the image was downloaded", out_of_time({"waiting": {"reason": "ContainerCreating"}})
    ),
    Case("the timeout was over while the program ran", out_of_time({"running": {"startedAt": ago(30)}})),
    Case("asked to end by the drain of its node, and ended well", drained()),
    Case(
        "succeeded, and a finalizer keeps it",
        over("Succeeded", ended(0, "Completed"), deletionTimestamp=ago(600), finalizers=["lab.example/record"]),
    ),
]


# Lines as programs and frameworks write them, each with the entry that knows it.
LINES = {
    "ImportError: libcuda.so.1: cannot open shared object file: No such file or directory": "no-gpu",
    "cuda_driver.cc:152] failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected": "no-gpu",
    "RuntimeError: unable to write to file </torch_41_7_2>: No space left on device (28)": "shared-memory",
    "OSError: [Errno 28] No space left on device: '/dev/shm/psm_4f2a'": "shared-memory",
    "MemoryError: std::bad_alloc: out_of_memory: CUDA error at: /opt/rmm/x.hpp:62: cudaErrorMemoryAllocation": "gpu-memory",
    "XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17179869184 bytes.": "gpu-memory",
    "OOM when allocating tensor with shape[64,512] on /job:localhost/device:GPU:0 by allocator GPU_0_bfc": "gpu-memory",
    "OOM when allocating tensor with shape[64,512] on /job:localhost/device:CPU:0 by allocator cpu": "memory",
    "Error: cannot allocate vector of size 7.5 Gb": "memory",
    "distributed.scheduler.KilledWorker: Attempted to run task 'read-3' on 4 different workers": "dask-workers",
    "(raylet) 1 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed": "ray-memory",
    "RuntimeError: CUDA error: CUDA driver version is insufficient for CUDA runtime version": "gpu-driver",
}
PREFIXES = (
    "(fit pid=77, ip=10.9.0.3) ",
    "(RayTrainWorker pid=12) ",
    "[rank0]: ",
    "[default3]:",
    "2026-11-29 10:00:00.123456: E external/xla/client.cc:152] ",
)


@pytest.mark.parametrize(("line", "key"), LINES.items())
def test_line_is_known_by_its_special_circumstance(line: str, key: str) -> None:
    finding = finding_of(line)
    assert finding is not None
    assert finding.key == f"grid.{key}"


@pytest.mark.parametrize("prefix", PREFIXES)
def test_prefix_of_a_framework_hides_neither_cause_nor_level(prefix: str) -> None:
    line = f"{prefix}ModuleNotFoundError: No module named 'shapely'"
    finding = finding_of(line)
    assert finding is not None
    assert (finding.key, finding.line) == ("grid.python-module", line)
    assert level_of(line) == "error"


@pytest.mark.parametrize("line", ["(1 of 3) done", "[2/5]: built", "2026-11-29 10:00:00.123456: x"])
def test_line_that_is_merely_like_a_prefix_stays_whole(line: str) -> None:
    assert without_prefix(line) == line


def test_field_cases_are_told_as_stored() -> None:
    assert_told_as_stored("words-of-field-cases", CASES)


@pytest.mark.parametrize(("phase", "state"), [("Succeeded", ended(0, "Completed")), ("Failed", ended(3))])
def test_pod_kept_by_a_finalizer_still_tells_its_end(phase: str, state: dict[str, Any]) -> None:
    kept = decode(over(phase, state, deletionTimestamp=ago(600), finalizers=["lab.example/record"]), Pod)
    assert explain_pod(kept, [], now=MOMENT).code == "stuck_ending"
    end = explain_end(kept)
    assert end is not None
    assert end.code in ("completed", "exit_code")


def test_pod_that_has_not_ended_has_no_end() -> None:
    assert explain_end(decode(pod("p", node="node-1"), Pod)) is None


def test_line_keeps_its_text_when_only_colours_follow_a_return() -> None:
    line = b"\x1b[1mSaved 12 files\x1b[0m\r\x1b[0m\x1b[?25h"
    assert "Saved 12 files" in rows_of([("2026-11-28T10:00:00.000000000", "p", line)])[0].html
