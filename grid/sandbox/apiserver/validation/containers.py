"""Validation of containers: names, images, ports, environment, mounts, probes, resources."""

from collections.abc import Collection

from grid.core.quantity import parse_quantity
from grid.core.regexes import Expression
from grid.sandbox.apiserver.kinds import Object
from grid.sandbox.apiserver.names import dns_label_problems, label_key_problems
from grid.sandbox.apiserver.status import StatusCause, duplicate, missing, prohibited, required, unsupported, wrong

_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_STANDARD_RESOURCES = ("cpu", "memory", "ephemeral-storage")
_PROBE_NUMBERS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_FIELD_PATHS = {
    *("metadata.name", "metadata.namespace", "metadata.uid", "metadata.labels", "metadata.annotations"),
    *("spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"),
}
_ENV_NAME_RULE = "a valid environment variable name must consist only of printable ASCII characters other than '='"
_PRINTABLE = Expression(r"[ -<>-~]+")
_KEYED_FIELD = Expression(r"metadata\.(?:labels|annotations)\['[^']+'\]")
_LETTER = Expression(r"[a-z]")
_PORT_NAME = Expression(r"[-a-z0-9]+")
_MOST_PORT = 65535


def check_containers(spec: Object, path: str, volumes: Collection[str]) -> list[StatusCause]:
    containers = spec.get("containers") or []
    if not containers:
        return [required(f"{path}.containers")]
    causes: list[StatusCause] = []
    seen: set[str] = set()
    for group in ("containers", "initContainers"):
        for number, container in enumerate(spec.get(group) or ()):
            here = f"{path}.{group}[{number}]"
            causes += _check_name(container.get("name", ""), here, seen)
            causes += _check_container(container, here, volumes)
    return causes


def _check_name(name: str, path: str, seen: set[str]) -> list[StatusCause]:
    if not name:
        return [required(f"{path}.name")]
    causes = [wrong(f"{path}.name", name, problem) for problem in dns_label_problems(name)]
    if name in seen:
        causes.append(duplicate(f"{path}.name", name))
    seen.add(name)
    return causes


def _check_container(container: Object, path: str, volumes: Collection[str]) -> list[StatusCause]:
    causes: list[StatusCause] = []
    if not container.get("image"):
        causes.append(required(f"{path}.image"))
    causes += _check_ports(container.get("ports") or [], f"{path}.ports")
    causes += _check_env(container.get("env") or [], f"{path}.env")
    causes += _check_mounts(container.get("volumeMounts") or [], f"{path}.volumeMounts", volumes)
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(probe) is not None:
            causes += _check_probe(container[probe], f"{path}.{probe}")
    policy = container.get("imagePullPolicy")
    if policy is not None and policy not in _PULL_POLICIES:
        causes.append(unsupported(f"{path}.imagePullPolicy", policy, _PULL_POLICIES))
    return causes + check_resources(container.get("resources") or {}, f"{path}.resources")


def _check_ports(ports: list[Object], path: str) -> list[StatusCause]:
    causes: list[StatusCause] = []
    for number, port in enumerate(ports):
        here = f"{path}[{number}]"
        name = port.get("name")
        if name:
            causes += [wrong(f"{here}.name", name, problem) for problem in port_name_problems(name)]
        if not port.get("containerPort"):
            causes.append(required(f"{here}.containerPort"))
        else:
            causes += check_port_number(port["containerPort"], f"{here}.containerPort")
        if port.get("protocol") not in _PROTOCOLS:
            causes.append(unsupported(f"{here}.protocol", port.get("protocol"), _PROTOCOLS))
    return causes


def port_name_problems(name: str) -> list[str]:
    problems = ["must be no more than 15 characters"] if len(name) > 15 else []
    if not _PORT_NAME.fullmatch(name):
        return [*problems, "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"]
    if not _LETTER.search(name):
        problems.append("must contain at least one letter (a-z)")
    return problems


def check_port_number(port: int, path: str) -> list[StatusCause]:
    return [] if 1 <= port <= _MOST_PORT else [wrong(path, port, f"must be between 1 and {_MOST_PORT}, inclusive")]


def _check_env(variables: list[Object], path: str) -> list[StatusCause]:
    causes: list[StatusCause] = []
    for number, variable in enumerate(variables):
        here, name = f"{path}[{number}]", variable.get("name", "")
        if not name:
            causes.append(required(f"{here}.name"))
        elif not _PRINTABLE.fullmatch(name):
            causes.append(wrong(f"{here}.name", name, _ENV_NAME_RULE))
        source = variable.get("valueFrom")
        if source is None:
            continue
        if variable.get("value"):
            causes.append(wrong(f"{here}.valueFrom", "", "may not be specified when `value` is not empty"))
        if not source:
            detail = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
            causes.append(wrong(f"{here}.valueFrom", "", detail))
        causes += _check_field_reference(source.get("fieldRef"), f"{here}.valueFrom.fieldRef.fieldPath")
    return causes


def _check_field_reference(reference: Object | None, path: str) -> list[StatusCause]:
    if reference is None:
        return []
    field = reference.get("fieldPath", "")
    if not field:
        return [required(path)]
    if field in _FIELD_PATHS or _KEYED_FIELD.fullmatch(field):
        return []
    return [wrong(path, field, f"error converting fieldPath: field label not supported: {field}")]


def _check_mounts(mounts: list[Object], path: str, volumes: Collection[str]) -> list[StatusCause]:
    causes: list[StatusCause] = []
    places: set[str] = set()
    for number, mount in enumerate(mounts):
        here = f"{path}[{number}]"
        if not mount.get("name"):
            causes.append(required(f"{here}.name"))
        elif mount["name"] not in volumes:
            causes.append(missing(f"{here}.name", mount["name"]))
        place = mount.get("mountPath", "")
        if not place:
            causes.append(required(f"{here}.mountPath"))
        elif place in places:
            causes.append(wrong(f"{here}.mountPath", place, "must be unique"))
        places.add(place)
        if ".." in str(mount.get("subPath", "")).split("/"):
            causes.append(wrong(f"{here}.subPath", mount["subPath"], "must not contain '..'"))
    return causes


def _check_probe(probe: Object, path: str) -> list[StatusCause]:
    handlers = [handler for handler in _HANDLERS if handler in probe]
    causes = [prohibited(f"{path}.{extra}", "may not specify more than 1 handler type") for extra in handlers[1:]]
    if not handlers:
        causes.append(required(path, "must specify a handler type"))
    negative = [field for field in _PROBE_NUMBERS if probe.get(field, 0) < 0]
    return causes + [wrong(f"{path}.{field}", probe[field], "must be greater than or equal to 0") for field in negative]


def check_resources(resources: Object, path: str) -> list[StatusCause]:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    causes: list[StatusCause] = []
    for where, amounts in (("limits", limits), ("requests", requests)):
        for name in sorted(amounts):
            causes += _check_amount(name, amounts[name], f"{path}.{where}[{name}]")
    for name in sorted(requests):
        causes += _check_against_limit(name, requests[name], limits.get(name), path)
    return causes


def _check_amount(name: str, amount: str, path: str) -> list[StatusCause]:
    causes: list[StatusCause] = []
    if name not in _STANDARD_RESOURCES and not name.startswith("hugepages-"):
        if "/" not in name:
            causes.append(wrong(path, name, "must be a standard resource type or fully qualified"))
            causes.append(wrong(path, name, "must be a standard resource for containers"))
        causes += [wrong(path, name, problem) for problem in label_key_problems(name)]
    value = parse_quantity(amount)
    if value < 0:
        causes.append(wrong(path, amount, "must be greater than or equal to 0"))
    if "/" in name and value != value.to_integral_value():
        causes.append(wrong(path, amount, "must be an integer"))
    return causes


def _check_against_limit(name: str, request: str, limit: str | None, path: str) -> list[StatusCause]:
    extended = "/" in name
    if limit is None:
        problem = "Limit must be set for non overcommitable resources"
        return [required(f"{path}.limits", problem)] if extended else []
    if extended and parse_quantity(request) != parse_quantity(limit):
        return [wrong(f"{path}.requests", request, f"must be equal to {name} limit of {limit}")]
    if parse_quantity(request) > parse_quantity(limit):
        return [wrong(f"{path}.requests", request, f"must be less than or equal to {name} limit of {limit}")]
    return []
