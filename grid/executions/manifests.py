"""The Kubernetes objects of an execution, built from its frozen spec alone. An anchor (a ConfigMap) owns the Secret and the Pod, so
deleting it deletes all but the claims of volumes. Names are derived from the execution's id, so a retry finds existing objects."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from grid.core import labels
from grid.core.labels import KEYS, MANAGED_BY, MANAGER, NODE_POOL, PREFIX, PROGRAM_ENDED, label_value
from grid.core.quantity import whole
from grid.diagnosis.beside import EXECUTOR, FRONT, PREPARER
from grid.executions import jupyter, listening
from grid.executions.kinds import kind_of
from grid.executions.runpod import front_data, with_sidecars
from grid.executions.spec import ExecutionSpec, TierSpec
from grid.executions.storage import (
    DEFAULT_STORAGE,
    Storage,
    claims,
    mounts,
    remote_secret_name,
    stored_secrets_name,
    volumes,
    working_directory,
)
from grid.executions.variables import secret_data, token_variable, variables
from grid.kube.objects import RawObject
from grid.kube.resources import CONFIG_MAPS, PODS, SECRETS, VOLUME_CLAIMS, Resource

CONTAINER = "run"
TITLE = f"{PREFIX}/title"
# Long enough to save open files, short enough for somebody who pressed Stop.
GRACE_SECONDS = 30
# Any unprivileged number works in any image, whatever user the image names; the volume's group makes files writable.
USER_ID = 1000
NO_SECRETS: Mapping[str, str] = {}
REMOTE = "remote/"  # no stored secret's name begins with it
CONFINED: dict[str, Any] = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
TOLD_PATH = "/mnt/program"
_TOLD, _ENDED = "program", "ended"
_REFUSED = ("startupProbe", "lifecycle")
_ONLY_OF_SIDECARS = ("restartPolicy", *_REFUSED)
# Of a pod that is never restarted, nobody starts the setup step again, so it tries by itself for so long.
_PATIENCE_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Manifest:
    """An object to create; `owned` is True when the anchor owns it."""

    resource: Resource
    body: RawObject
    owned: bool = True

    @classmethod
    def of(cls, resource: Resource, metadata: Mapping[str, Any], *, owned: bool = True, **parts: object) -> "Manifest":
        """Return an object of that kind with the metadata and its other parts, such as `spec`."""
        kind = {"apiVersion": resource.api_version, "kind": resource.kind}
        return cls(resource, {**kind, "metadata": dict(metadata), **parts}, owned)

    @property
    def name(self) -> str:
        return str(self.body["metadata"]["name"])


def build(
    spec: ExecutionSpec,
    *,
    namespace: str,
    token: str,
    anchor_uid: str = "",
    storage: Storage = DEFAULT_STORAGE,
    client_variables: Mapping[str, str] = MappingProxyType({}),
    secrets: Mapping[str, str] = NO_SECRETS,
    front_key: str = "",
) -> list[Manifest]:
    """Return all objects in the order of creation, the anchor first; the others refer to it by `anchor_uid`, known once it exists. By
    `client_variables` its program finds its cluster. `secrets` are the values of the stored secrets by name, and of the files that the
    project's remote repository asks for, by `REMOTE` and the file's name; `front_key` is the key of its front's tokens."""
    return [
        anchor(spec, namespace=namespace),
        *volume_claims(spec, namespace=namespace, storage=storage),
        *secret(spec, namespace=namespace, anchor_uid=anchor_uid, token=token, front_key=front_key),
        *stored_secrets(spec, namespace=namespace, anchor_uid=anchor_uid, values=secrets),
        *remote_secret(spec, namespace=namespace, anchor_uid=anchor_uid, values=secrets),
        pod(spec, namespace=namespace, anchor_uid=anchor_uid, more=client_variables, front_key=front_key),
    ]


def anchor(spec: ExecutionSpec, *, namespace: str) -> Manifest:
    names = {"execution": spec.id, "tier": spec.tier.id, "environment": spec.environment.id}
    data = {**names, **jupyter.data(spec), **front_data(spec)}
    return Manifest.of(CONFIG_MAPS, metadata(spec, namespace), owned=False, data=data)


def volume_claims(spec: ExecutionSpec, *, namespace: str, storage: Storage) -> list[Manifest]:
    return [Manifest(VOLUME_CLAIMS, body, owned=False) for body in claims(spec, namespace=namespace, storage=storage)]


def labels_of(spec: ExecutionSpec) -> dict[str, str]:
    """Return the labels that selectors look for, with people's texts as valid label values."""
    return {
        labels.APP_NAME: label_value(spec.environment.id),
        labels.APP_INSTANCE: spec.object_name,
        labels.APP_COMPONENT: label_value(spec.kind),
        MANAGED_BY: MANAGER,
        KEYS.workload_type: label_value(spec.kind),
        KEYS.tier: label_value(spec.tier.id),
        KEYS.project: label_value(spec.project.id),
        KEYS.user: label_value(spec.owner),
        KEYS.execution: spec.id,
    }


def metadata(spec: ExecutionSpec, namespace: str, anchor_uid: str = "", *, name: str = "") -> dict[str, Any]:
    """Return the metadata of an object that the anchor owns; without a `name` of its own it has the anchor's."""
    own: dict[str, Any] = {"name": name or spec.object_name, "namespace": namespace, "labels": labels_of(spec)}
    if not anchor_uid:
        return own
    anchor = {"apiVersion": "v1", "kind": "ConfigMap", "name": spec.object_name, "uid": anchor_uid}
    return {**own, "ownerReferences": [{**anchor, "controller": True, "blockOwnerDeletion": True}]}


def secret(
    spec: ExecutionSpec, *, namespace: str, anchor_uid: str, token: str = "", front_key: str = ""
) -> list[Manifest]:
    """Return the Secret that the containers' variables refer to; [] when they refer to none."""
    data = secret_data(spec, token=token, front_key=front_key)
    return [_secret(spec, "", data, namespace=namespace, anchor_uid=anchor_uid)] if data else []


def stored_secrets(
    spec: ExecutionSpec, *, namespace: str, anchor_uid: str, values: Mapping[str, str]
) -> list[Manifest]:
    """Return the Secret with the stored secrets of the spec; [] when it has none. What is not among the values is left empty."""
    if not spec.secrets:
        return []
    data = {stored.name: values.get(stored.name, "") for stored in spec.secrets}
    return [_secret(spec, stored_secrets_name(spec), data, namespace=namespace, anchor_uid=anchor_uid)]


def remote_secret(spec: ExecutionSpec, *, namespace: str, anchor_uid: str, values: Mapping[str, str]) -> list[Manifest]:
    """Return the Secret with what the project's remote repository asks for; [] when its files are elsewhere."""
    if spec.files is None or not spec.files.remote:
        return []
    files = {name.removeprefix(REMOTE): text for name, text in values.items() if name.startswith(REMOTE)}
    return [_secret(spec, remote_secret_name(spec), files, namespace=namespace, anchor_uid=anchor_uid)]


def _secret(spec: ExecutionSpec, name: str, data: Mapping[str, str], *, namespace: str, anchor_uid: str) -> Manifest:
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    return Manifest.of(SECRETS, metadata(spec, namespace, anchor_uid, name=name), type="Opaque", data=encoded)


def pod(
    spec: ExecutionSpec,
    *,
    namespace: str,
    anchor_uid: str = "",
    more: Mapping[str, str] = MappingProxyType({}),
    front_key: str = "",
) -> Manifest:
    """Return the pod; `more` are further variables of its program, `front_key` is the key of its front."""
    whole = metadata(spec, namespace, anchor_uid)
    timeout = spec.job.timeout_seconds if spec.job else None
    program = {
        "containers": [_container(spec, more, front_key)],
        "volumes": volumes(spec, spec.tier),
        # A workspace whose server crashes restarts; when its user shuts it down from within it has ended, like a job.
        "restartPolicy": kind_of(spec.kind).restart_policy,
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        **({"activeDeadlineSeconds": timeout} if timeout else {}),
        **placement(spec, spec.tier),
    }
    decorated = {**whole, **pod_decoration(spec.tier, whole["labels"], spec.title)}
    return Manifest.of(PODS, decorated, spec=with_sidecars(spec, program, CONFINED))


def pod_decoration(tier: TierSpec, own_labels: Mapping[str, str], title: str) -> dict[str, dict[str, str]]:
    """Return the labels and annotations of a pod of that tier."""
    return {
        # Our labels win: a tier's extra labels never hide an execution from its owner.
        "labels": {**tier.extra_labels, **own_labels},
        "annotations": {
            **tier.extra_annotations,
            TITLE: title,
            # Work in memory is lost when a pod is moved, so the autoscaler must not empty its node.
            labels.SAFE_TO_EVICT: "false",
        },
    }


def placement(spec: ExecutionSpec, tier: TierSpec) -> dict[str, Any]:
    """Return the part of a pod's spec that its tier and image decide: nodes, image pull secret, and security context."""
    registry = spec.environment.image_pull_secret
    return {**({"imagePullSecrets": [{"name": registry}]} if registry else {}), **bare_placement(tier)}


def bare_placement(tier: TierSpec) -> dict[str, Any]:
    """Return the part of a pod's spec that its tier decides, whatever its image is."""
    return {
        "nodeSelector": {NODE_POOL: tier.node_pool},
        "tolerations": tolerations_of(tier),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER_ID,
            "runAsGroup": USER_ID,
            "fsGroup": USER_ID,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }


def container(spec: ExecutionSpec, tier: TierSpec) -> dict[str, Any]:
    """Return the fields of every container of an execution, whatever it runs."""
    return {
        "name": CONTAINER,
        "image": spec.environment.image,
        "workingDir": working_directory(spec),
        "resources": requests_and_limits(tier),
        "volumeMounts": mounts(spec, tier),
        "securityContext": CONFINED,
        # The end of the log explains a failure to somebody who never looks into the container.
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def _container(spec: ExecutionSpec, more: Mapping[str, str], front_key: str) -> dict[str, Any]:
    run = container(spec, spec.tier)
    run["env"] = variables(spec, {**token_variable(spec), **{name: {"value": value} for name, value in more.items()}})
    if spec.job is not None and spec.job.command:
        # Kubernetes expands $(NAME) in a command, and would paste a parameter into the script; a double dollar stays one.
        run["command"] = ["/bin/sh", "-c", spec.job.command.replace("$", "$$")]
    elif spec.environment.command:
        run["command"] = listening.command(spec)
    if spec.port:
        run["ports"] = [{"name": "http", "containerPort": spec.port, "protocol": "TCP"}]
    run["volumeMounts"] = [*run["volumeMounts"], *listening.mounts(spec)]
    return {**run, **listening.probes(spec, front_key)}


def requests_and_limits(tier: TierSpec) -> dict[str, dict[str, str]]:
    """Return the resources of a container of that tier."""
    requests = {"cpu": tier.cores, "memory": tier.memory}
    limits = {"cpu": tier.cores_limit, "memory": tier.memory_limit}
    if tier.ephemeral_storage:
        # Most executions write little, and a node's disk is small: if the whole limit were reserved, as Kubernetes does without a request,
        # a disk of 100 GiB would hold nine pods on any number of cores. A node short of disk evicts pods over their request first.
        mebibytes = max(1, whole(tier.ephemeral_storage) // 10 // 2**20)
        requests["ephemeral-storage"] = f"{mebibytes}Mi" if mebibytes % 1024 else f"{mebibytes // 1024}Gi"
        limits["ephemeral-storage"] = tier.ephemeral_storage
    cards = {tier.gpu_resource: str(tier.gpus)} if tier.gpus else {}
    return {"requests": requests | cards, "limits": limits | cards}


def tolerations_of(tier: TierSpec) -> list[dict[str, Any]]:
    """Return what the tier's pods tolerate: what its admin typed, and the taint of the GPUs that it asks for."""
    tolerations = [dict(toleration) for toleration in tier.tolerations]
    # Clouds keep other pods off machines with GPUs by this taint.
    gpu = {"key": tier.gpu_resource, "operator": "Exists", "effect": "NoSchedule"}
    return [*tolerations, gpu] if tier.gpus and gpu not in tolerations else tolerations


def bare(pod: Manifest) -> Manifest:
    """Return the pod without the probes and hooks of its init containers: a server that drops what makes a sidecar refuses those."""
    steps = [{k: v for k, v in step.items() if k not in _REFUSED} for step in pod.body["spec"]["initContainers"]]
    return Manifest(pod.resource, {**pod.body, "spec": {**pod.body["spec"], "initContainers": steps}}, pod.owned)


def without_sidecars(pod: Manifest) -> Manifest:
    """Return the pod with its executor and nginx as ordinary containers, where the API server has no native sidecars, as Kubernetes has
    from 1.29 on. The executor becomes a setup step that fetches the files, and a container beside the program that saves them and ends by
    itself; nginx ends when the pod is deleted, which the controller does as soon as the program has ended.

    Kubernetes tells one container of a pod nothing about another, so the controller tells the executor that the program has ended: it reads
    that from the pod's status, restarts included, and writes an annotation, which the kubelet shows to this container as a file. That holds
    for every image and every way to end. A command around the program would need a shell in its image, would be process 1 in the program's
    place, and would say nothing when it is killed; a shared process namespace would open the repository to the program; a token to read the
    status would have to reach the API server, and could read the pods of others.
    """
    spec: dict[str, Any] = pod.body["spec"]
    sidecars = {step["name"]: step for step in spec.get("initContainers", ())}
    if front := sidecars.get(FRONT):
        steps = [step for step in spec["initContainers"] if step is not front]
        spec = {**spec, "initContainers": steps, "containers": [*spec["containers"], _ordinary(front)]}
    if executor := sidecars.get(EXECUTOR):
        spec = _with_ordinary_executor(spec, executor)
    return Manifest(pod.resource, {**pod.body, "spec": spec}, pod.owned)


def _ordinary(sidecar: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in sidecar.items() if key not in _ONLY_OF_SIDECARS}


def _with_ordinary_executor(spec: dict[str, Any], executor: dict[str, Any]) -> dict[str, Any]:
    ordinary = _ordinary(executor)
    patience = (f"--patience={_PATIENCE_SECONDS}",) if spec["restartPolicy"] == "Never" else ()
    prepares = {**ordinary, "name": PREPARER, "args": [*ordinary["args"], "--only-prepare", *patience]}
    saves = {
        **ordinary,
        "lifecycle": executor["lifecycle"],
        "args": [*ordinary["args"], f"--told={TOLD_PATH}/{_ENDED}"],
        "volumeMounts": [*ordinary["volumeMounts"], {"name": _TOLD, "mountPath": TOLD_PATH, "readOnly": True}],
    }
    annotation = {"path": _ENDED, "fieldRef": {"fieldPath": f"metadata.annotations['{PROGRAM_ENDED}']"}}
    return {
        **spec,
        "initContainers": [prepares if step is executor else step for step in spec["initContainers"]],
        "containers": [*spec["containers"], saves],
        "volumes": [*spec["volumes"], {"name": _TOLD, "downwardAPI": {"items": [annotation]}}],
    }
