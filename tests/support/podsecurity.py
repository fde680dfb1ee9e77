"""Kubernetes' Pod Security standard *restricted* (with *baseline*, which it contains), as its admission checks a pod.

After https://kubernetes.io/docs/concepts/security/pod-security-standards/ of 1.36, but for what only Windows has.
"""

from collections.abc import Iterator, Mapping
from typing import Any

_VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


def violations(metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> list[str]:
    """A line for each thing that the admission would refuse the pod for."""
    containers = [*spec["containers"], *spec.get("initContainers", ()), *spec.get("ephemeralContainers", ())]
    lines = [*_of_pod(metadata, spec)]
    for container in containers:
        lines += [f"{container['name']}: {line}" for line in _of_container(container, spec.get("securityContext", {}))]
    return lines


def _of_pod(metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> Iterator[str]:
    for field in ("hostNetwork", "hostPID", "hostIPC"):
        if spec.get(field):
            yield field
    for volume in spec.get("volumes", ()):
        kinds = volume.keys() - {"name"}
        if not kinds <= _VOLUMES:
            yield f"volume {volume['name']} of kind {kinds}"
    for name in metadata.get("annotations", {}):
        if name.startswith("container.apparmor.security.beta.kubernetes.io/"):
            yield f"annotation {name}"
    if spec.get("securityContext", {}).get("sysctls"):
        yield "sysctls"


def _of_container(container: Mapping[str, Any], of_pod: Mapping[str, Any]) -> Iterator[str]:
    own = container.get("securityContext", {})
    context = {**of_pod, **own}
    if own.get("allowPrivilegeEscalation") is not False:
        yield "allowPrivilegeEscalation"
    if own.get("privileged") or own.get("procMount", "Default") != "Default":
        yield "privileged or procMount"
    capabilities = own.get("capabilities", {})
    if "ALL" not in capabilities.get("drop", ()) or not set(capabilities.get("add", ())) <= {"NET_BIND_SERVICE"}:
        yield "capabilities"
    if context.get("runAsNonRoot") is not True or context.get("runAsUser") == 0:
        yield "runs as root"
    if context.get("seccompProfile", {}).get("type") not in ("RuntimeDefault", "Localhost"):
        yield "seccompProfile"
    if context.get("seLinuxOptions") or context.get("appArmorProfile", {}).get("type") == "Unconfined":
        yield "seLinuxOptions or appArmorProfile"
    if any(port.get("hostPort") for port in container.get("ports", ())):
        yield "hostPort"
    hooks = container.get("lifecycle", {})
    for probe in (
        *(container.get(name, {}) for name in _PROBES),
        *(hooks.get(name, {}) for name in ("postStart", "preStop")),
    ):
        if any(probe.get(kind, {}).get("host") for kind in ("httpGet", "tcpSocket")):
            yield "a probe or hook that names a host"
