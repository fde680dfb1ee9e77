"""The containers of a description: images, commands, states, resources, probes, variables, mounts."""

import math
from collections.abc import Sequence
from urllib.parse import quote

from grid.core.quantity import parse_quantity
from grid.diagnosis.describe.writing import Columns, RawObject, full_time, small_bool

_PATH_SAFE = "$&+,/:;=@-_.~"  # what Go's net/url leaves as it is in a path
_PROBES = (("Liveness", "livenessProbe"), ("Readiness", "readinessProbe"), ("Startup", "startupProbe"))


def write_containers(
    out: Columns, title: str, containers: Sequence[RawObject], statuses: Sequence[RawObject] | None, pod: RawObject
) -> None:
    by_name = {status["name"]: status for status in statuses or ()}
    out.write(0, f"{title}:\n")
    for container in containers:
        status = by_name.get(container["name"])
        out.write(1, f"{container['name']}:\n")
        _write_image(out, container, status)
        for heading, field in (("Command", "command"), ("Args", "args")):
            _write_lines(out, heading, container.get(field) or ())
        if status:
            _write_state(out, "State", status.get("state") or {})
            if (status.get("lastState") or {}).get("terminated"):
                _write_state(out, "Last State", status["lastState"])
            out.write(2, f"Ready:\t{bool(status.get('ready'))}\n")
            out.write(2, f"Restart Count:\t{status.get('restartCount', 0)}\n")
        for heading, field in (("Limits", "limits"), ("Requests", "requests")):
            amounts = (container.get("resources") or {}).get(field) or {}
            _write_lines(out, heading, [f"{name}:\t{amounts[name]}" for name in sorted(amounts)])
        for heading, field in _PROBES:
            if probe := container.get(field):
                out.write(2, f"{heading}:\t{_probe(probe)}\n")
        _write_variable_sources(out, container.get("envFrom") or ())
        _write_variables(out, container, pod)
        _write_mounts(out, container)


def _write_image(out: Columns, container: RawObject, status: RawObject | None) -> None:
    if status:
        out.write(2, f"Container ID:\t{status.get('containerID', '')}\n")
    out.write(2, f"Image:\t{container.get('image', '')}\n")
    if status:
        out.write(2, f"Image ID:\t{status.get('imageID', '')}\n")
    for heading, field in (("Port", "containerPort"), ("Host Port", "hostPort")):
        ports = [_port(port, field) for port in container.get("ports") or ()]
        out.write(2, f"{heading}{'s' if len(ports) > 1 else ''}:\t{', '.join(ports) or '<none>'}\n")


def _port(port: RawObject, field: str) -> str:
    name = f" ({port['name']})" if port.get("name") else ""
    return f"{port.get(field, 0)}/{port.get('protocol', 'TCP')}{name}"


def _write_lines(out: Columns, heading: str, texts: Sequence[str]) -> None:
    if texts:
        out.write(2, f"{heading}:\n")
    for text in texts:
        for line in text.split("\n"):
            out.write(3, f"{line}\n")


def _write_state(out: Columns, heading: str, state: RawObject) -> None:
    if state.get("running") is not None:
        out.write(2, f"{heading}:\tRunning\n")
        out.write(3, f"Started:\t{full_time(state['running'].get('startedAt'))}\n")
    elif state.get("terminated") is not None:
        ended = state["terminated"]
        out.write(2, f"{heading}:\tTerminated\n")
        out.write_set(3, ended, ("Reason", "reason"), ("Message", "message"))
        out.write(3, f"Exit Code:\t{ended.get('exitCode', 0)}\n")
        out.write_set(3, ended, ("Signal", "signal"))
        out.write(3, f"Started:\t{full_time(ended.get('startedAt'))}\n")
        out.write(3, f"Finished:\t{full_time(ended.get('finishedAt'))}\n")
    else:
        out.write(2, f"{heading}:\tWaiting\n")
        out.write_set(3, state.get("waiting") or {}, ("Reason", "reason"))


def _probe(probe: RawObject) -> str:
    numbers = (
        f"delay={probe.get('initialDelaySeconds', 0)}s timeout={probe.get('timeoutSeconds', 0)}s "
        f"period={probe.get('periodSeconds', 0)}s #success={probe.get('successThreshold', 0)} "
        f"#failure={probe.get('failureThreshold', 0)}"
    )
    if probe.get("exec"):
        return f"exec [{' '.join(probe['exec'].get('command') or ())}] {numbers}"
    if probe.get("httpGet"):
        get = probe["httpGet"]
        address = f"{get.get('host', '')}:{get['port']}" if get.get("port") not in (None, "") else get.get("host", "")
        return f"http-get {get.get('scheme', 'HTTP').lower()}://{address}{quote(get.get('path', ''), safe=_PATH_SAFE)} {numbers}"
    if probe.get("tcpSocket"):
        return f"tcp-socket {probe['tcpSocket'].get('host', '')}:{probe['tcpSocket']['port']} {numbers}"
    if probe.get("grpc"):
        return f"grpc <pod>:{probe['grpc']['port']} {probe['grpc'].get('service') or ''} {numbers}"
    return f"unknown {numbers}"


def _write_variable_sources(out: Columns, sources: Sequence[RawObject]) -> None:
    if sources:
        out.write(2, "Environment Variables from:\n")
    for source in sources:
        kind = "ConfigMap" if source.get("configMapRef") else "Secret"
        reference = source["configMapRef" if kind == "ConfigMap" else "secretRef"]
        prefix = f" with prefix '{source['prefix']}'" if source.get("prefix") else ""
        optional = small_bool(reference.get("optional"))
        out.write(3, f"{reference.get('name', '')}\t{kind}{prefix}\tOptional: {optional}\n")


def _write_variables(out: Columns, container: RawObject, pod: RawObject) -> None:
    variables = container.get("env") or ()
    out.write(2, "Environment:\n" if variables else "Environment:\t<none>\n")
    for variable in variables:
        name, source = variable["name"], variable.get("valueFrom")
        if not source:
            first, *more = variable.get("value", "").split("\n")
            out.write(3, f"{name}:\t{first}\n")
            for line in more:
                out.write(3, f"\t{line}\n")
        else:
            out.write(3, f"{name}:\t{_variable_source(source, container, pod)}\n")


def _variable_source(source: RawObject, container: RawObject, pod: RawObject) -> str:
    if source.get("fieldRef"):
        field = source["fieldRef"]
        return f"{_field(pod, field['fieldPath'])} ({field.get('apiVersion', 'v1')}:{field['fieldPath']})"
    if source.get("resourceFieldRef"):
        reference = source["resourceFieldRef"]
        return f"{_resource(reference, container)} ({reference['resource']})"
    if source.get("secretKeyRef"):
        key = source["secretKeyRef"]
        where = f"in secret '{key.get('name', '')}'"
    else:
        key = source["configMapKeyRef"]
        where = f"of config map '{key.get('name', '')}'"
    return f"<set to the key '{key['key']}' {where}>\tOptional: {small_bool(key.get('optional'))}"


def _field(pod: RawObject, path: str) -> str:
    """Return the value of a metadata field, "" for others: kubectl resolves only the plain metadata fields."""
    names = {"metadata.name": "name", "metadata.namespace": "namespace", "metadata.uid": "uid"}
    return str(pod["metadata"].get(names[path], "")) if path in names else ""


def _resource(reference: RawObject, container: RawObject) -> str:
    """Return the resource of this container, even where the reference names another container: kubectl does so."""
    resources = container.get("resources") or {}
    part, _, name = reference["resource"].partition(".")
    divisor = parse_quantity(reference.get("divisor") or 1) or parse_quantity(1)
    value = math.ceil(parse_quantity(resources.get(part, {}).get(name, 0)) / divisor)
    return "node allocatable" if value == 0 and part == "limits" and name in ("cpu", "memory") else str(value)


def _write_mounts(out: Columns, container: RawObject) -> None:
    mounts = sorted(container.get("volumeMounts") or (), key=lambda mount: str(mount["mountPath"]))
    out.write(2, "Mounts:\n" if mounts else "Mounts:\t<none>\n")
    for mount in mounts:
        flags = "ro" if mount.get("readOnly") else "rw"
        flags += f',path="{mount["subPath"]}"' if mount.get("subPath") else ""
        out.write(3, f"{mount['mountPath']} from {mount['name']} ({flags})\n")
    devices = sorted(container.get("volumeDevices") or (), key=lambda device: str(device["devicePath"]))
    if devices:
        out.write(2, "Devices:\n")
    for device in devices:
        out.write(3, f"{device['devicePath']} from {device['name']}\n")
