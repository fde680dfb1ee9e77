"""The Job that builds a revision's image on a real cluster with a rootless builder, and what its state means; pure.

The settings of each builder's container are those that its own project documents for Kubernetes:
https://github.com/moby/buildkit/blob/master/docs/rootless.md and https://github.com/containers/buildah/tree/main/docs/tutorials.
A package's own code may read the registry's credentials there; docs/environments.md says why, and which account to use.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grid.core.labels import APP_COMPONENT, APP_INSTANCE, APP_NAME, MANAGED_BY, MANAGER
from grid.core.regexes import Expression, RepeatedExpression
from grid.core.translation import gettext as _
from grid.environments.revisions import BuildProgress
from grid.executions.manifests import Manifest
from grid.kube.objects import Pod, RawObject
from grid.kube.resources import CONFIG_MAPS, JOBS

BUILD_SECONDS = 1800
KEPT_SECONDS = 24 * 3600  # an ended Job stays as long, for its log
CONTAINER = "build"
_USER = 1000  # of both builders' images; and of executions, whatever an image says
_FOLDER, _CREDENTIALS = "/workspace", "/credentials"
_DIGEST = Expression(r"sha256:[0-9a-f]{64}")
_PIP_ERROR, _PIP_FOLLOWS_UP = RepeatedExpression(r"\bERROR: "), ("process ", "failed to ")
_ANY_ERROR = Expression(r"(?i)\berror: (.+)")
_LONGEST_LINE = 4000  # characters in which an error is looked for
_LONGEST_ERROR = 500

# BuildKit writes the digest among other things, by renaming a file, which the termination log cannot be.
_BUILDKIT = """\
buildctl-daemonless.sh build --progress plain --frontend dockerfile.v0 \\
  --local context=/workspace --local dockerfile=/workspace \\
  --output "type=image,name=$IMAGE,push=true" --metadata-file /tmp/metadata.json
sed -n 's/.*"containerimage.digest": *"\\(sha256:[0-9a-f]*\\)".*/\\1/p' /tmp/metadata.json > /dev/termination-log
"""
_BUILDAH = """\
buildah build --format docker --layers=false --file /workspace/Dockerfile --tag "$IMAGE" /workspace
buildah push --digestfile /tmp/digest "$IMAGE"
cat /tmp/digest > /dev/termination-log
"""


@dataclass(frozen=True, slots=True)
class BuilderKind:
    """A rootless builder: its name for people, its image, what it runs, and where it keeps layers."""

    title: str
    image: str
    script: str
    storage: str
    variables: Mapping[str, str]


BUILDERS: Mapping[str, BuilderKind] = {
    "buildkit": BuilderKind(
        "BuildKit",
        "docker.io/moby/buildkit:rootless",
        _BUILDKIT,
        "/home/user/.local/share/buildkit",
        # Without it runc asks for a /proc of its own, which an unprivileged pod may not mount.
        {"BUILDKITD_FLAGS": "--oci-worker-no-process-sandbox", "DOCKER_CONFIG": _CREDENTIALS},
    ),
    "buildah": BuilderKind(
        "Buildah",
        "quay.io/buildah/stable:latest",
        _BUILDAH,
        "/home/build/.local/share/containers",
        # vfs needs no /dev/fuse, and chroot no nested containers.
        {"BUILDAH_ISOLATION": "chroot", "STORAGE_DRIVER": "vfs", "REGISTRY_AUTH_FILE": f"{_CREDENTIALS}/config.json"},
    ),
}


@dataclass(frozen=True, slots=True)
class BuildSettings:
    """How an installation builds; `secret` is the name of a Secret with the registry's credentials, "" for none."""

    builder: str
    namespace: str
    image: str = ""
    secret: str = ""
    index: str = ""
    cores: str = "1"
    memory: str = "4Gi"

    @property
    def kind(self) -> BuilderKind:
        return BUILDERS[self.builder]


@dataclass(frozen=True, slots=True)
class RevisionOrder:
    """An image to build and push: its name with its tag, the image it stands on, and what is installed on top."""

    image: str
    base: str
    requirements: Sequence[str]

    @property
    def job(self) -> str:
        """Return the name of its Job: that of the environment with number and hash of the content."""
        environment, _, tag = self.image.rpartition("/")[2].partition(":")
        return f"build-{environment[:40]}-{tag}"[:63].rstrip("-.")

    def by_digest(self, digest: str) -> str:
        folder, _, name = self.image.rpartition("/")
        return f"{folder}/{name.partition(':')[0]}@{digest}"


def dockerfile(base: str) -> str:
    """Return how the image is made: as root, because a base's packages are seldom its user's; executions run as user 1000."""
    return (
        f"FROM {base}\n"
        "USER 0\n"
        "COPY requirements.txt /opt/compute-grid/requirements.txt\n"
        "RUN PIP_ROOT_USER_ACTION=ignore python3 -m pip install --no-input --no-cache-dir --no-color"
        " --disable-pip-version-check --progress-bar=off -r /opt/compute-grid/requirements.txt\n"
        f"USER {_USER}\n"
    )


def job_manifest(order: RevisionOrder, settings: BuildSettings) -> Manifest:
    """Return the Job; its pod waits for the ConfigMap, which the Job owns."""
    labels = {APP_NAME: "image-build", APP_INSTANCE: order.job, APP_COMPONENT: CONTAINER, MANAGED_BY: MANAGER}
    # An AppArmor profile is a field since 1.30, and was an annotation; a server that knows both wants them equal.
    unconfined = {f"container.apparmor.security.beta.kubernetes.io/{CONTAINER}": "unconfined"}
    body = {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "metadata": {"name": order.job, "namespace": settings.namespace, "labels": labels},
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": BUILD_SECONDS,
            "ttlSecondsAfterFinished": KEPT_SECONDS,
            # A node that is drained costs the build no attempt.
            "podFailurePolicy": {
                "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
            },
            "template": {"metadata": {"labels": labels, "annotations": unconfined}, "spec": _pod(order, settings)},
        },
    }
    return Manifest(JOBS, body)


def files_manifest(order: RevisionOrder, settings: BuildSettings, *, job_uid: str) -> Manifest:
    """Return the ConfigMap with the Dockerfile and the requirements, owned by the Job."""
    index = [f"--index-url {settings.index}"] if settings.index else []
    body = {
        "apiVersion": CONFIG_MAPS.api_version,
        "kind": CONFIG_MAPS.kind,
        "metadata": {
            "name": order.job,
            "namespace": settings.namespace,
            "labels": {MANAGED_BY: MANAGER, APP_INSTANCE: order.job},
            "ownerReferences": [{"apiVersion": JOBS.api_version, "kind": JOBS.kind, "name": order.job, "uid": job_uid}],
        },
        "data": {
            "Dockerfile": dockerfile(order.base),
            "requirements.txt": "\n".join([*index, *order.requirements, ""]),
        },
    }
    return Manifest(CONFIG_MAPS, body)


def _pod(order: RevisionOrder, settings: BuildSettings) -> dict[str, Any]:
    kind = settings.kind
    # Single files: a whole ConfigMap consists of links, which builders copy as such.
    mounts: list[dict[str, Any]] = [
        {"name": "files", "mountPath": f"{_FOLDER}/{file}", "subPath": file, "readOnly": True}
        for file in ("Dockerfile", "requirements.txt")
    ]
    mounts.append({"name": "layers", "mountPath": kind.storage})
    volumes: list[dict[str, Any]] = [
        {"name": "files", "configMap": {"name": order.job}},
        {"name": "layers", "emptyDir": {}},
    ]
    if settings.secret:
        items = [{"key": ".dockerconfigjson", "path": "config.json"}]
        volumes.append({"name": "credentials", "secret": {"secretName": settings.secret, "items": items}})
        mounts.append({"name": "credentials", "mountPath": _CREDENTIALS, "readOnly": True})
    limits = {"memory": settings.memory}
    container = {
        "name": CONTAINER,
        "image": settings.image or kind.image,
        "command": ["sh", "-ec", kind.script],
        "env": [{"name": name, "value": value} for name, value in {"IMAGE": order.image, **kind.variables}.items()],
        "resources": {"requests": {"cpu": settings.cores, **limits}, "limits": limits},
        # A user namespace is made by newuidmap, which gains a right for it, and by calls that the usual profiles refuse.
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "privileged": False,
            "allowPrivilegeEscalation": True,
            "seccompProfile": {"type": "Unconfined"},
            "appArmorProfile": {"type": "Unconfined"},
        },
        "volumeMounts": mounts,
    }
    rights = {"automountServiceAccountToken": False, "enableServiceLinks": False}
    return {"restartPolicy": "Never", **rights, "containers": [container], "volumes": volumes}


def progress_of(
    job: RawObject, pod: Pod | None, log: str, *, order: RevisionOrder, settings: BuildSettings, before: str = ""
) -> BuildProgress:
    """Return how a build goes; `before` is why it waited when it was looked at last, for one whose pod is gone."""
    id = str(job["metadata"]["uid"]).replace("-", "")
    conditions = job.get("status", {}).get("conditions") or ()
    ended = {condition["type"]: condition for condition in conditions if condition.get("status") == "True"}
    if "Complete" in ended:
        if (match := _DIGEST.search(_terminated(pod)[1])) is not None:
            return BuildProgress(id, "ready", log=log, digest=match[0], image=order.by_digest(match[0]))
        gone = _("The image was built and pushed, but its pod was gone before its digest was read. Build it again.")
        return BuildProgress(id, "failed", gone, log)
    if "Failed" in ended:
        return BuildProgress(id, "failed", _why_failed(ended["Failed"], pod, log, settings, before), log)
    return BuildProgress(id, "building", _why_waiting(pod, order, settings), log)


def last_error(log: str) -> str:
    """Return what the log ends with that says most: pip's last error, else any, else the last line; without a full stop."""
    lines = [line[:_LONGEST_LINE] for line in reversed(log.split("\n"))]
    errors = (next(filter(None, map(error_of, lines)), "") for error_of in (_pip_error, _any_error, str.strip))
    return next(filter(None, errors), "").strip().rstrip(".")[:_LONGEST_ERROR]


def _pip_error(line: str) -> str:
    """Return the first error of a line that says more than that pip's process failed."""
    places = (match.end() for match in _PIP_ERROR.finditer(line))
    return next((line[place:] for place in places if not line.startswith(_PIP_FOLLOWS_UP, place)), "")


def _any_error(line: str) -> str:
    match = _ANY_ERROR.search(line)
    return match[1] if match else ""


def _why_failed(condition: Mapping[str, Any], pod: Pod | None, log: str, settings: BuildSettings, before: str) -> str:
    if condition.get("reason") == "DeadlineExceeded":
        return f"{_('It was not built within {minutes} minutes.', minutes=BUILD_SECONDS // 60)} {before}".rstrip()
    reason, _unused = _terminated(pod)
    if reason == "OOMKilled":
        sentence = _("{builder} ran out of memory, of which it has {memory}: an admin raises GRID_BUILD_MEMORY.")
        return sentence.format(builder=settings.kind.title, memory=settings.memory)
    if pod is not None and pod.status.reason:  # Evicted, say
        return _("Its pod was ended: {reason}. {message}", reason=pod.status.reason, message=pod.status.message).strip()
    if error := last_error(log):
        return _("{builder} failed: {error}.", builder=settings.kind.title, error=error)
    return _("{builder} failed and wrote nothing.", builder=settings.kind.title)


def _terminated(pod: Pod | None) -> tuple[str, str]:
    """Return the reason and the message with which the builder's container ended."""
    for status in pod.status.container_statuses if pod else ():
        if status.name == CONTAINER and status.state.terminated is not None:
            return status.state.terminated.reason, status.state.terminated.message
    return "", ""


def _why_waiting(pod: Pod | None, order: RevisionOrder, settings: BuildSettings) -> str:
    """Return what a build that has not begun waits for, as a sentence; "" while it runs."""
    who = _("{builder} (Job {job} in {namespace})")
    who = who.format(builder=settings.kind.title, job=order.job, namespace=settings.namespace)
    if pod is None:
        return _("{builder} has no pod yet.", builder=who)
    waiting = next((status.state.waiting for status in pod.status.container_statuses if status.state.waiting), None)
    if waiting is not None and waiting.reason not in ("", "ContainerCreating", "PodInitializing"):
        sentence = _("{builder} waits: {reason}. {message}")
        return sentence.format(builder=who, reason=waiting.reason, message=waiting.message).strip()
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False":
            sizes, words = {"cores": settings.cores, "memory": settings.memory}, condition.message
            sentence = _("{builder} waits for a node with {cores} cores and {memory}. {message}")
            return sentence.format(builder=who, message=words, **sizes).strip()
    if pod.status.phase == "Pending":
        sentence = _("{builder} waits for its image, {image}.")
        if settings.secret:
            sentence = _("{builder} waits for its image, {image} and the Secret {secret}.")
        return sentence.format(builder=who, image=settings.image or settings.kind.image, secret=settings.secret)
    return ""
