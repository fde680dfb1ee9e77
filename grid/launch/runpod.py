"""The executor in a run's pod: the container that fetches the project's files from Git and saves them (`grid.files.executor`).

It is a native sidecar, an init container that goes on: `run` starts when its startup probe has found the files, and when `run` has ended
it gets SIGTERM and the rest of the grace period. It alone sees the repository, and of the volume nothing but this project's.
"""

from typing import Any

from grid.diagnosis.files import EXECUTOR
from grid.launch.spec import ExecutionSpec, FilesSpec
from grid.launch.storage import HOME_PATH, PROJECT_PATH

REPOSITORY_PATH = "/mnt/repository"
STATE_PATH = "/mnt/executor"
_VOLUME, _STATE = "repositories", "executor"
_REPORT_PATH = "/dev/termination-log"
# Git uses much only for a moment, when it packs. Without a limit of each kind, a quota of limits would refuse the pod.
_LIMITS = {"cpu": "1", "memory": "1Gi"}


def with_executor(spec: ExecutionSpec, pod_spec: dict[str, Any], *, security: dict[str, Any]) -> dict[str, Any]:
    """Return the pod's spec with the executor; unchanged where the project's files are not in Git."""
    files = spec.files
    if files is None:
        return pod_spec
    volumes = [
        {"name": _VOLUME, "persistentVolumeClaim": {"claimName": files.claim}},
        {"name": _STATE, "emptyDir": {}},
    ]
    grace = int(pod_spec["terminationGracePeriodSeconds"])
    return {
        "initContainers": [_executor(spec, files, grace, security)],
        **pod_spec,
        "volumes": [*pod_spec["volumes"], *volumes],
        # The program has what it has elsewhere, and then its files are saved.
        "terminationGracePeriodSeconds": grace + files.save_seconds,
    }


def executor_requests(files: FilesSpec, *, with_disk: bool) -> dict[str, str]:
    """Return what the executor takes of a node, beside the program; of its disk only where the tier limits that."""
    return {"cpu": files.cores, "memory": files.memory, **({"ephemeral-storage": "64Mi"} if with_disk else {})}


def _executor(spec: ExecutionSpec, files: FilesSpec, grace: int, security: dict[str, Any]) -> dict[str, Any]:
    # Git stores what changed a second time, and the kubelet compares the volumes with the sum of the limits.
    disk = {"ephemeral-storage": spec.tier.ephemeral_storage} if spec.tier.ephemeral_storage else {}
    arguments = {
        "repository": REPOSITORY_PATH,
        "work": PROJECT_PATH,
        "state": STATE_PATH,
        "report": _REPORT_PATH,
        "home": HOME_PATH,
        "name": spec.object_name,
        "branch": files.branch,
        "commit": files.commit,
        "grace": str(grace),
        "seconds": str(files.save_seconds // 2),
    }
    mounts = [
        {"name": _VOLUME, "mountPath": REPOSITORY_PATH, "subPath": files.repository},
        {"name": _STATE, "mountPath": STATE_PATH},
        {"name": "project", "mountPath": PROJECT_PATH},
        {"name": "home", "mountPath": HOME_PATH},
    ]
    return {
        "name": EXECUTOR,
        "image": files.image,
        "args": [f"--{name}={value}" for name, value in arguments.items()],
        "env": [_text("GRID_AUTHOR", spec.owner), _text("GRID_TITLE", spec.title)],
        "restartPolicy": "Always",
        "resources": {"requests": executor_requests(files, with_disk=bool(disk)), "limits": {**_LIMITS, **disk}},
        "volumeMounts": mounts,
        "startupProbe": {
            "exec": {"command": ["test", "-e", f"{STATE_PATH}/ready"]},
            "periodSeconds": 1,
            "timeoutSeconds": 5,
            "failureThreshold": 24 * 60 * 60,  # the timeout of preparing ends it, not the probe
        },
        "lifecycle": {"preStop": {"exec": {"command": ["touch", f"{STATE_PATH}/stopping"]}}},
        "securityContext": security,
    }


def _text(name: str, value: str) -> dict[str, str]:
    """Return a variable with people's text, in which Kubernetes is to expand nothing."""
    return {"name": name, "value": value.replace("$", "$$")}
