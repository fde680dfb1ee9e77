"""The volumes of an execution: the project's files, which its members share; its owner's own, HOME; and those that end with the pod. HOME
is not a part of the project's volume: programs read their configuration there and keep their secrets there, and anybody who could write
into it would run code as the person who starts the next workspace. Claims have no owner and outlive every execution."""

from dataclasses import dataclass
from typing import Any

from grid.core.labels import KEYS, MANAGED_BY, MANAGER, label_value
from grid.executions import jupyter
from grid.executions.kinds import kind_of
from grid.executions.spec import ExecutionSpec, TierSpec
from grid.kube.objects import RawObject

PROJECT_PATH = "/mnt/project"
HOME_PATH = "/home/grid"
# Connection files of kernels and the server's token belong to one pod, whereas several workspaces of one person share HOME.
RUNTIME_PATH = "/run/grid"
SECRETS_PATH = "/mnt/secrets"
_SECRETS = "secrets"


@dataclass(frozen=True, slots=True)
class Storage:
    """How volumes are claimed. Several executions of one project run on several nodes, so the mode is ReadWriteMany; a cluster whose
    storage cannot do that uses ReadWriteOnce and keeps a project on one node at a time."""

    access_mode: str = "ReadWriteMany"
    storage_class: str = ""


DEFAULT_STORAGE = Storage()


def claims(spec: ExecutionSpec, *, namespace: str, storage: Storage) -> list[RawObject]:
    """Return the claims for the project's files and for its owner's own."""
    labels = {MANAGED_BY: MANAGER, KEYS.project: label_value(spec.project.id)}
    if spec.files:
        # The volume that an admin has made for all repositories: it gets no other, because a new one would be empty.
        needed = [_claim(spec.files.claim, "1Gi", {MANAGED_BY: MANAGER}, namespace, DEFAULT_STORAGE)]
        needed[0]["spec"]["storageClassName"] = ""
    else:
        needed = [_claim(spec.project.volume_name, spec.project.volume_size, labels, namespace, storage)]
    if spec.home:
        own = {**labels, KEYS.user: label_value(spec.owner)}
        needed.append(_claim(spec.home.volume_name, spec.home.volume_size, own, namespace, storage))
    return needed


def working_directory(spec: ExecutionSpec) -> str:
    """Return the directory in which the program starts: the project's for jobs, apps and clusters, which run its code; HOME for a
    workspace, because Jupyter obeys a `jupyter_server_config.py` of the directory in which it is started. A job may name a folder below."""
    if kind_of(spec.kind).starts_at_home:
        return HOME_PATH
    return f"{PROJECT_PATH}/{spec.job.folder}" if spec.job and spec.job.folder else PROJECT_PATH


def places(spec: ExecutionSpec) -> dict[str, str]:
    """Return the variables with the paths of the volumes."""
    return {
        "GRID_PROJECT_PATH": PROJECT_PATH,
        "HOME": HOME_PATH,
        **({"GRID_SECRETS_PATH": SECRETS_PATH} if _secret_files(spec) else {}),
        **({"JUPYTER_RUNTIME_DIR": RUNTIME_PATH} if kind_of(spec.kind).starts_at_home else {}),
    }


def scratch(tier: TierSpec) -> dict[str, Any]:
    """Return a volume on the node's disk that is deleted with the pod."""
    return {"emptyDir": {"sizeLimit": tier.ephemeral_storage} if tier.ephemeral_storage else {}}


def volumes(spec: ExecutionSpec, tier: TierSpec) -> list[dict[str, Any]]:
    home = {"persistentVolumeClaim": {"claimName": spec.home.volume_name}} if spec.home else scratch(tier)
    shared = {"persistentVolumeClaim": {"claimName": spec.project.volume_name}}
    project = scratch(tier) if spec.files else shared
    needed: list[dict[str, Any]] = [{"name": "project", **project}, {"name": "home", **home}]
    if kind_of(spec.kind).starts_at_home:
        needed += [{"name": "runtime", **scratch(tier)}, *jupyter.volumes(spec)]
    if tier.shared_memory:
        needed.append({"name": "shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": tier.shared_memory}})
    if files := _secret_files(spec):
        items = [{"key": name, "path": name} for name in files]
        # Readable for the volume's group, in which every container's user is, and for nobody else.
        secret = {"secretName": stored_secrets_name(spec), "items": items, "defaultMode": 0o440}
        needed.append({"name": _SECRETS, "secret": secret})
    return needed


def mounts(spec: ExecutionSpec, tier: TierSpec) -> list[dict[str, Any]]:
    of_home = [{"name": "runtime", "mountPath": RUNTIME_PATH}, jupyter.MOUNT]
    return [
        {"name": "project", "mountPath": PROJECT_PATH},
        {"name": "home", "mountPath": HOME_PATH},
        *(of_home if kind_of(spec.kind).starts_at_home else []),
        *([{"name": "shared-memory", "mountPath": "/dev/shm"}] if tier.shared_memory else []),
        *([{"name": _SECRETS, "mountPath": SECRETS_PATH, "readOnly": True}] if _secret_files(spec) else []),
    ]


def stored_secrets_name(spec: ExecutionSpec) -> str:
    """Return the name of the Kubernetes Secret with an execution's stored secrets, each under its own name."""
    return f"{spec.object_name}-secrets"


def remote_secret_name(spec: ExecutionSpec) -> str:
    """Return the name of the Kubernetes Secret with what the project's remote repository asks for; only the executor mounts it."""
    return f"{spec.object_name}-remote"


def _secret_files(spec: ExecutionSpec) -> list[str]:
    return [secret.name for secret in spec.secrets if secret.is_file]


def _claim(name: str, size: str, labels: dict[str, str], namespace: str, storage: Storage) -> RawObject:
    claim: dict[str, Any] = {"accessModes": [storage.access_mode], "resources": {"requests": {"storage": size}}}
    if storage.storage_class:
        claim["storageClassName"] = storage.storage_class
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": claim}
