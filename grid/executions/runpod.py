"""The containers beside a run's program: the executor, which fetches the project's files from Git and saves them (`grid.files.executor`),
and nginx, the front of its web server (`grid.executions.front`). The front is a native sidecar too, so that the pod ends with its program.
It alone sees its key. The executor is a native sidecar, an init container that goes on: `run` starts when its startup probe has found the
files, and when `run` has ended it gets SIGTERM and the rest of the grace period. It alone sees the repository, and of the volume nothing
but this project's; and it alone the secret of a remote repository."""

from typing import Any

from grid.core.quantity import parse_quantity
from grid.core.translation import gettext as _
from grid.diagnosis.beside import EXECUTOR, FRONT
from grid.diagnosis.shortages import ContainerNeeds
from grid.executions import listening
from grid.executions.front import ADDRESS, KEY_FILE, PROGRAM_HOST, PROGRAM_SOCKET, AuthProxySpec, configuration
from grid.executions.spec import ExecutionSpec, FilesSpec
from grid.executions.storage import HOME_PATH, PROJECT_PATH, remote_secret_name
from grid.executions.variables import FRONT_KEY_KEY

REPOSITORY_PATH = "/mnt/repository"
STATE_PATH = "/mnt/executor"
REMOTE_PATH = "/mnt/remote"
_VOLUME, _STATE, _REMOTE = "repositories", "executor", "remote"
_FRONT_FILES, _FRONT_FILES_PATH = "front", "/etc/grid/front"
_FRONT_KEY, _FRONT_KEY_PATH = "front-key", "/etc/grid/front-key"
_FRONT_RUN, _FRONT_RUN_PATH = "front-run", "/run/front"
_CONFIGURATION = "nginx.conf"
# nginx reads no variables, so addresses are written into a copy of its configuration; an IPv6 address is in brackets there.
_START_FRONT = f"""\
set -e
umask 077
case "$POD_IP" in *:*) address="[$POD_IP]";; *) address="$POD_IP";; esac
sed "s|{ADDRESS}|$address|g; s|{PROGRAM_HOST}|${listening.LISTEN_HOST}|g; s|{PROGRAM_SOCKET}|{listening.SOCKET_PATH}|g" \
    {_FRONT_FILES_PATH}/{_CONFIGURATION} > {_FRONT_RUN_PATH}/{_CONFIGURATION}
cat {_FRONT_KEY_PATH}/{KEY_FILE} > {_FRONT_RUN_PATH}/{KEY_FILE}
exec nginx -p {_FRONT_RUN_PATH} -c {_FRONT_RUN_PATH}/{_CONFIGURATION} -e stderr
"""
# The least that they are limited to: an operator may have them reserve more.
_FRONT_LIMITS = {"cpu": "1", "memory": "128Mi"}
# Git uses much only for a moment, when it packs. Without a limit of each kind, a quota of limits would refuse the pod.
_LIMITS = {"cpu": "1", "memory": "1Gi"}


def with_sidecars(spec: ExecutionSpec, pod_spec: dict[str, Any], security: dict[str, Any]) -> dict[str, Any]:
    """Return the pod's spec with the front and the executor, where there are any; the front first, so that it is there from the start."""
    return _with_front(spec, _with_executor(spec, pod_spec, security), security)


def front_data(spec: ExecutionSpec) -> dict[str, str]:
    """Return the files of the front for the execution's ConfigMap, by their keys."""
    if spec.front is None:
        return {}
    is_any, upstream = not spec.environment.readiness_path, listening.upstream(spec)
    return {_CONFIGURATION: configuration(spec.front, upstream=upstream, is_any_answer_ready=is_any)}


def _with_front(spec: ExecutionSpec, pod_spec: dict[str, Any], security: dict[str, Any]) -> dict[str, Any]:
    front = spec.front
    if front is None:
        return pod_spec
    items = [{"key": _CONFIGURATION, "path": _CONFIGURATION}]
    # Readable for the volume's group, in which nginx's user is, and for nobody else.
    keys = [{"key": FRONT_KEY_KEY, "path": KEY_FILE}]
    volumes = [
        {"name": _FRONT_FILES, "configMap": {"name": spec.object_name, "items": items}},
        {"name": _FRONT_KEY, "secret": {"secretName": spec.object_name, "items": keys, "defaultMode": 0o440}},
        {"name": _FRONT_RUN, "emptyDir": {"medium": "Memory", "sizeLimit": "8Mi"}},
        *listening.volumes(spec),
    ]
    return {
        **pod_spec,
        "initContainers": [_front(spec, front, security), *pod_spec.get("initContainers", [])],
        "volumes": [*pod_spec["volumes"], *volumes],
    }


def _front(spec: ExecutionSpec, front: AuthProxySpec, security: dict[str, Any]) -> dict[str, Any]:
    requests = front_requests(front)
    return {
        "name": FRONT,
        "image": front.image,
        "command": ["/bin/sh", "-c", _START_FRONT],
        "env": [
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            *({"name": name, **value} for name, value in listening.variables(spec).items()),
        ],
        "ports": [{"name": "front", "containerPort": front.port, "protocol": "TCP"}],
        "restartPolicy": "Always",
        "resources": {"requests": requests, "limits": _limits(_FRONT_LIMITS, requests)},
        "volumeMounts": [
            {"name": _FRONT_FILES, "mountPath": _FRONT_FILES_PATH, "readOnly": True},
            {"name": _FRONT_KEY, "mountPath": _FRONT_KEY_PATH, "readOnly": True},
            {"name": _FRONT_RUN, "mountPath": _FRONT_RUN_PATH},
            *listening.mounts(spec),
        ],
        "securityContext": {**security, "readOnlyRootFilesystem": True},
    }


def sidecar_needs(spec: ExecutionSpec) -> tuple[ContainerNeeds, ...]:
    """Return what the front and the executor ask for beside the program, where there are any."""
    needs = []
    if front := spec.front:
        requests = front_requests(front)
        needs.append(ContainerNeeds(_("nginx in front of it"), requests, _limits(_FRONT_LIMITS, requests)))
    if files := spec.files:
        requests = executor_requests(files, with_disk=bool(spec.tier.ephemeral_storage))
        needs.append(ContainerNeeds(_("the executor of its files"), requests, _executor_limits(spec, requests)))
    return tuple(needs)


def _executor_limits(spec: ExecutionSpec, requests: dict[str, str]) -> dict[str, str]:
    # Git stores what changed a second time, and the kubelet compares the volumes with the sum of the limits.
    disk = {"ephemeral-storage": spec.tier.ephemeral_storage} if spec.tier.ephemeral_storage else {}
    return {**_limits(_LIMITS, requests), **disk}


def _limits(usual: dict[str, str], requests: dict[str, str]) -> dict[str, str]:
    """Return the limits, none below its request: the API server would refuse the pod."""
    return {name: max(amount, requests[name], key=parse_quantity) for name, amount in usual.items()}


def front_requests(front: AuthProxySpec) -> dict[str, str]:
    """Return what the front takes of a node, beside the program."""
    return {"cpu": front.cores, "memory": front.memory}


def _with_executor(spec: ExecutionSpec, pod_spec: dict[str, Any], security: dict[str, Any]) -> dict[str, Any]:
    files = spec.files
    if files is None:
        return pod_spec
    secret = {"secretName": remote_secret_name(spec), "defaultMode": 0o440}
    volumes = [
        {"name": _VOLUME, "persistentVolumeClaim": {"claimName": files.claim}},
        {"name": _STATE, "emptyDir": {}},
        *([{"name": _REMOTE, "secret": secret}] if files.remote else []),
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
    requests = executor_requests(files, with_disk=bool(spec.tier.ephemeral_storage))
    arguments = {
        "repository": REPOSITORY_PATH,
        "work": PROJECT_PATH,
        "state": STATE_PATH,
        "report": "/dev/termination-log",
        "home": HOME_PATH,
        "name": spec.object_name,
        "branch": files.branch,
        "commit": files.commit,
        "grace": str(grace),
        "seconds": str(files.save_seconds // 2),
        **({"fallback": files.fallback} if files.fallback else {}),
        **({"largest": str(files.largest_gibibytes)} if files.largest_gibibytes else {}),
        **({"remote": files.remote, "secret": REMOTE_PATH} if files.remote else {}),
        **({"results": files.results, "results-bytes": str(files.results_bytes)} if files.results else {}),
    }
    mounts = [
        {"name": _VOLUME, "mountPath": REPOSITORY_PATH, "subPath": files.repository},
        {"name": _STATE, "mountPath": STATE_PATH},
        {"name": "project", "mountPath": PROJECT_PATH},
        {"name": "home", "mountPath": HOME_PATH},
        *([{"name": _REMOTE, "mountPath": REMOTE_PATH, "readOnly": True}] if files.remote else []),
    ]
    return {
        "name": EXECUTOR,
        "image": files.image,
        "args": [f"--{name}={value}" for name, value in arguments.items()],
        "env": [_text("GRID_AUTHOR", spec.owner), _text("GRID_TITLE", spec.title)],
        "restartPolicy": "Always",
        "resources": {"requests": requests, "limits": _executor_limits(spec, requests)},
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
