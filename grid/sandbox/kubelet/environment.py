"""A container's environment: literal values, references to secrets, config maps, the pod's own fields and its resources.

Pure functions, but for `Sources`, which fetches objects. A value that cannot be resolved is a `ConfigError` with the message
that Kubernetes uses, shown as CreateContainerConfigError.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING
from typing import Any, NamedTuple, Protocol

from grid.core.quantity import parse_quantity
from grid.core.regexes import Expression
from grid.sandbox.client import Object, annotations_of, labels_of, name_of, namespace_of, uid_of

_KEYED = Expression(r"metadata\.(labels|annotations)\['(.*)'\]")
_LISTED = Expression(r"metadata\.(labels|annotations)")
_ENV_NAME = Expression(r"[^=\0]+")
_LOOPBACK = "127.0.0.1"


class ConfigError(Exception):
    """The container cannot be created as it is described now; it is retried later."""


class Sources(Protocol):
    """The source of referenced values. Both methods return None when the object does not exist."""

    async def config_map(self, namespace: str, name: str) -> Mapping[str, bytes] | None: ...

    async def secret(self, namespace: str, name: str) -> Mapping[str, bytes] | None: ...


@dataclass(frozen=True, slots=True)
class DownwardFacts:
    """A pod, and the values of its fields that are not in the object yet."""

    pod: Object
    pod_ip: str
    host_ip: str
    node_name: str
    allocatable: Mapping[str, str] = field(default_factory=dict)


class Variable(NamedTuple):
    value: str
    secret: bool  # from a Secret: never rewritten


async def environment_of(container: Object, facts: DownwardFacts, sources: Sources) -> dict[str, Variable]:
    """Return all variables of a container; a later one may use the earlier ones by `$(NAME)`. Raise `ConfigError`."""
    result: dict[str, Variable] = {}
    namespace = namespace_of(facts.pod)
    for source in container.get("envFrom") or ():
        result.update(await _whole_object(source, namespace, sources))
    for entry in container.get("env") or ():
        name = str(entry["name"])
        if not _ENV_NAME.fullmatch(name):
            raise ConfigError(f"“{name}” cannot be the name of a variable")
        if entry.get("valueFrom"):
            variable = await _referenced(entry["valueFrom"], container, facts, sources)
        else:
            values = {known: earlier.value for known, earlier in result.items()}
            text = expand(str(entry.get("value") or ""), values)
            if text == _LOOPBACK:  # the machine's; what the pod has for itself here is its own address
                text = facts.pod_ip
            variable = Variable(
                text, any(earlier.secret and earlier.value in text for earlier in result.values() if earlier.value)
            )
        if variable is not None:
            result[name] = variable
    return result


async def _whole_object(source: Object, namespace: str, sources: Sources) -> dict[str, Variable]:
    prefix = source.get("prefix") or ""
    reference = source.get("secretRef") or source.get("configMapRef") or {}
    secret = "secretRef" in source
    name = reference.get("name", "")
    data = await (sources.secret if secret else sources.config_map)(namespace, name)
    if data is None:
        if reference.get("optional"):
            return {}
        raise ConfigError(f'{"secret" if secret else "configmap"} "{name}" not found')
    return {
        prefix + key: Variable(value.decode(errors="replace"), secret)
        for key, value in sorted(data.items())
        if _ENV_NAME.fullmatch(prefix + key)
    }


async def _referenced(reference: Object, container: Object, facts: DownwardFacts, sources: Sources) -> Variable | None:
    if reference.get("fieldRef"):
        return Variable(field_value(reference["fieldRef"].get("fieldPath", ""), facts), False)
    if reference.get("resourceFieldRef"):
        return Variable(resource_value(reference["resourceFieldRef"], container, facts), False)
    secret = bool(reference.get("secretKeyRef"))
    selector = reference.get("secretKeyRef") or reference.get("configMapKeyRef") or {}
    name, key, namespace = selector.get("name", ""), selector.get("key", ""), namespace_of(facts.pod)
    data = await (sources.secret if secret else sources.config_map)(namespace, name)
    if data is not None and key in data:
        return Variable(data[key].decode(errors="replace"), secret)
    if selector.get("optional"):
        return None
    if data is None:
        raise ConfigError(f'{"secret" if secret else "configmap"} "{name}" not found')
    raise ConfigError(f"couldn't find key {key} in {'Secret' if secret else 'ConfigMap'} {namespace}/{name}")


def field_value(path: str, facts: DownwardFacts) -> str:
    """Return one field of the pod as text, for the downward API. Raise `ConfigError` for an unsupported one."""
    pod = facts.pod
    simple = {
        "metadata.name": name_of(pod),
        "metadata.namespace": namespace_of(pod),
        "metadata.uid": uid_of(pod),
        "spec.nodeName": facts.node_name,
        "spec.serviceAccountName": str(pod["spec"].get("serviceAccountName", "")),
        "status.podIP": facts.pod_ip,
        "status.podIPs": facts.pod_ip,
        "status.hostIP": facts.host_ip,
        "status.hostIPs": facts.host_ip,
    }
    if path in simple:
        return simple[path]
    keyed = _KEYED.fullmatch(path)
    if keyed:
        values = labels_of(pod) if keyed[1] == "labels" else annotations_of(pod)
        return values.get(keyed[2], "")
    listed = _LISTED.fullmatch(path)
    if listed:
        values = labels_of(pod) if listed[1] == "labels" else annotations_of(pod)
        return "\n".join(f'{key}="{value}"' for key, value in sorted(values.items()))
    raise ConfigError(f"unsupported fieldPath: {path}")


def resource_value(reference: Object, container: Object, facts: DownwardFacts) -> str:
    """Return a request or limit in units of the divisor, rounded up; a limit that is not set is the node's allocatable amount."""
    kind, _, resource = str(reference.get("resource", "")).partition(".")
    wanted = reference.get("containerName")
    if wanted:
        spec = facts.pod["spec"]
        everyone = [*spec["containers"], *(spec.get("initContainers") or ())]
        container = next((item for item in everyone if item["name"] == wanted), container)
    if kind not in ("limits", "requests") or not resource:
        raise ConfigError(f"unsupported container resource: {reference.get('resource')}")
    given: Mapping[str, Any] = (container.get("resources") or {}).get(kind) or {}
    quantity = given.get(resource)
    if quantity is None:
        quantity = facts.allocatable.get(resource, "0") if kind == "limits" else "0"
    divisor = parse_quantity(reference.get("divisor") or "1") or parse_quantity("1")
    return str(int((parse_quantity(quantity) / divisor).to_integral_value(ROUND_CEILING)))


def expand(text: str, values: Mapping[str, str]) -> str:
    """Replace `$(NAME)` by its value, or leave it when there is none; `$$` is a dollar sign."""
    parts: list[str] = []
    end, last = 0, text.rfind(")")
    start = text.find("$")
    while start >= 0:
        if text.startswith("$$", start):
            parts += text[end:start], "$"
            end = start + 2
        elif text.startswith("$(", start) and start < last:  # without the last, each "$(" would be followed to the end
            close = text.index(")", start)
            parts += text[end:start], values.get(text[start + 2 : close], text[start : close + 1])
            end = close + 1
        start = text.find("$", max(end, start + 1))
    return "".join((*parts, text[end:]))


def expand_all(texts: Sequence[str], values: Mapping[str, str]) -> list[str]:
    return [expand(str(text), values) for text in texts]


def decoded(obj: Object) -> dict[str, bytes]:
    """Return the content of a ConfigMap or a Secret. Raise `ConfigError` for a value that is not base64."""
    result: dict[str, bytes] = {}
    encoded: Mapping[str, str] = obj.get("data") or {}
    if obj.get("kind") == "Secret":
        for key, value in encoded.items():
            try:
                result[key] = base64.b64decode(value, validate=True)
            except (binascii.Error, ValueError) as error:
                raise ConfigError(f"secret {name_of(obj)}: the value of {key} is not base64") from error
        return result
    result = {key: value.encode() for key, value in encoded.items()}
    for key, value in (obj.get("binaryData") or {}).items():
        result[key] = base64.b64decode(value)
    return result
