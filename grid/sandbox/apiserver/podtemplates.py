"""The defaults of pods and of the templates that others make pods of."""

from grid.sandbox.apiserver.kinds import Object

_VOLUME_MODES = {"configMap": 420, "secret": 420, "projected": 420, "downwardAPI": 420}


def pod_spec_defaults(spec: Object) -> None:
    """Fill in the defaults that a pod and a pod template share."""
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")
    if spec.get("serviceAccountName") and not spec.get("serviceAccount"):
        spec["serviceAccount"] = spec["serviceAccountName"]
    for group in ("containers", "initContainers", "ephemeralContainers"):
        for container in spec.get(group) or ():
            _container_defaults(container)
    for volume in spec.get("volumes") or ():
        for source, mode in _VOLUME_MODES.items():
            if isinstance(volume.get(source), dict):
                volume[source].setdefault("defaultMode", mode)
        template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
        if template:
            template.setdefault("metadata", {})
            template.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
        if set(volume) == {"name"}:
            volume["emptyDir"] = {}


def _container_defaults(container: Object) -> None:
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    if "imagePullPolicy" not in container and container.get("image"):
        tag = container["image"].rpartition("/")[2].partition("@")[0].partition(":")[2]
        pinned = "@" in container["image"] or tag not in ("", "latest")
        container["imagePullPolicy"] = "IfNotPresent" if pinned else "Always"
    resources = container.setdefault("resources", {})
    for name, amount in (resources.get("limits") or {}).items():
        resources.setdefault("requests", {}).setdefault(name, amount)
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
    for variable in container.get("env") or ():
        reference = (variable.get("valueFrom") or {}).get("fieldRef")
        if reference is not None:
            reference.setdefault("apiVersion", "v1")
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(name):
            _probe_defaults(container[name])


def _probe_defaults(probe: Object) -> None:
    for key, value in (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)):
        probe[key] = probe.get(key) or value
    if probe.get("httpGet"):
        probe["httpGet"].setdefault("path", "/")
        probe["httpGet"].setdefault("scheme", "HTTP")
