"""What stands beside a program where the API server has no native sidecars, which Kubernetes has from 1.29 on. Pure.

The executor becomes a setup step that fetches the files, and a container beside the program that saves them and ends by itself. nginx
becomes a container beside the program too; it ends when the pod is deleted, which the controller does as soon as the program has ended.

Kubernetes tells one container of a pod nothing about another, so somebody has to tell the executor that the program has ended. The
controller does: it reads the program's end from the pod's status, restarts included, and writes an annotation, which the kubelet shows to
this container as a file. That holds for every image and every way to end. A command around the program would need a shell in its image,
would be process 1 in the program's place, and would say nothing when it is killed; a shared process namespace would open the repository
to the program; a token to read the status would have to reach the API server, and could read the pods of others.
"""

from typing import Any

from grid.core.labels import PROGRAM_ENDED
from grid.diagnosis.beside import EXECUTOR, FRONT, PREPARER
from grid.executions.manifests import Manifest

TOLD_PATH = "/mnt/program"
_TOLD, _ENDED = "program", "ended"
_REFUSED = ("startupProbe", "lifecycle")
_ONLY_OF_SIDECARS = ("restartPolicy", *_REFUSED)
# Of a pod that is never restarted, nobody starts the setup step again, so it tries by itself for so long.
_PATIENCE_SECONDS = 300


def bare(pod: Manifest) -> Manifest:
    """Return the pod without the probes and hooks of its init containers: a server that drops what makes a sidecar refuses those."""
    steps = [{k: v for k, v in step.items() if k not in _REFUSED} for step in pod.body["spec"]["initContainers"]]
    return Manifest(pod.resource, {**pod.body, "spec": {**pod.body["spec"], "initContainers": steps}}, pod.owned)


def without_sidecars(pod: Manifest) -> Manifest:
    """Return the pod with its executor and nginx as ordinary containers."""
    spec: dict[str, Any] = pod.body["spec"]
    for name, changed in ((FRONT, _with_ordinary_front), (EXECUTOR, _with_ordinary_executor)):
        sidecar = next((step for step in spec.get("initContainers", ()) if step["name"] == name), None)
        if sidecar is not None:
            spec = changed(spec, sidecar)
    return Manifest(pod.resource, {**pod.body, "spec": spec}, pod.owned)


def _ordinary(sidecar: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in sidecar.items() if key not in _ONLY_OF_SIDECARS}


def _with_ordinary_front(spec: dict[str, Any], front: dict[str, Any]) -> dict[str, Any]:
    steps = [step for step in spec["initContainers"] if step is not front]
    return {**spec, "initContainers": steps, "containers": [*spec["containers"], _ordinary(front)]}


def _with_ordinary_executor(spec: dict[str, Any], executor: dict[str, Any]) -> dict[str, Any]:
    ordinary = _ordinary(executor)
    patience = (f"--patience={_PATIENCE_SECONDS}",) if spec["restartPolicy"] == "Never" else ()
    prepares = {**ordinary, "name": PREPARER, "args": [*ordinary["args"], "--only-prepare", *patience]}
    saves = {
        **ordinary,
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
