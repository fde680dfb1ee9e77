"""Validation of configuration, services, claims, quotas, leases and events."""

from collections.abc import Mapping, Sequence

from grid.core.quantity import parse_quantity
from grid.sandbox.apiserver.kinds import Object
from grid.sandbox.apiserver.names import config_key_problems
from grid.sandbox.apiserver.status import StatusCause, prohibited, required, unsupported, wrong
from grid.sandbox.apiserver.validation.containers import check_port_number
from grid.sandbox.storage import requested_storage

_MOST_DATA_BYTES = 1024 * 1024
_SERVICE_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")
ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_SECRET_KEYS: Mapping[str, Sequence[str]] = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
}
_IMMUTABLE = "field is immutable when `immutable` is set"
_CLAIM_RULE = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)


def check_data(obj: Object) -> list[StatusCause]:
    """Check the keys and the size of a ConfigMap's or a Secret's data."""
    causes: list[StatusCause] = []
    total = 0
    for field in ("data", "binaryData"):
        for key, value in (obj.get(field) or {}).items():
            causes += [wrong(f"{field}[{key}]", key, problem) for problem in config_key_problems(key)]
            total += len(value.encode())
    if total > _MOST_DATA_BYTES:
        causes.append(StatusCause("", "FieldValueTooLong", f"Too long: may not be more than {_MOST_DATA_BYTES} bytes"))
    return causes


def check_secret(secret: Object) -> list[StatusCause]:
    """Check also that a Secret of a known type has the keys that those who read it rely on."""
    data: Object = secret.get("data") or {}
    needed = _SECRET_KEYS.get(secret.get("type", ""), ())
    if secret.get("type") == "kubernetes.io/basic-auth":
        needed = () if any(key in data for key in ("username", "password")) else ("username", "password")
    return check_data(secret) + [required(f"data[{key}]") for key in needed if key not in data]


def check_data_update(new: Object, old: Object) -> list[StatusCause]:
    """Check that the type, and the data of an immutable ConfigMap or Secret, stay unchanged."""
    causes: list[StatusCause] = []
    if new.get("type") != old.get("type"):
        causes.append(wrong("type", new.get("type"), "field is immutable"))
    if not old.get("immutable"):
        return causes
    if not new.get("immutable"):
        causes.append(prohibited("immutable", _IMMUTABLE))
    changed = [field for field in ("data", "binaryData") if new.get(field) != old.get(field)]
    return causes + [prohibited(field, _IMMUTABLE) for field in changed]


def check_endpoint_slice(endpoints: Object) -> list[StatusCause]:
    kind = endpoints.get("addressType", "")
    if not kind:
        return [required("addressType")]
    return [] if kind in _ADDRESS_TYPES else [unsupported("addressType", kind, _ADDRESS_TYPES)]


def check_endpoint_slice_update(new: Object, old: Object) -> list[StatusCause]:
    kind = new.get("addressType", "")
    return [] if kind == old.get("addressType") else [wrong("addressType", kind, "field is immutable")]


def check_service(service: Object) -> list[StatusCause]:
    spec = service["spec"]
    causes: list[StatusCause] = []
    ports = spec.get("ports") or []
    if spec.get("type") not in _SERVICE_TYPES:
        causes.append(unsupported("spec.type", spec.get("type"), _SERVICE_TYPES))
    if not ports and spec.get("type") != "ExternalName" and spec.get("clusterIP") != "None":
        causes.append(required("spec.ports"))
    for number, port in enumerate(ports):
        path = f"spec.ports[{number}]"
        causes += check_port_number(port.get("port", 0), f"{path}.port")
        if len(ports) > 1 and not port.get("name"):
            causes.append(required(f"{path}.name"))
        if isinstance(port.get("targetPort"), int):
            causes += check_port_number(port["targetPort"], f"{path}.targetPort")
    return causes


def check_service_update(new: Object, old: Object) -> list[StatusCause]:
    before, after = old["spec"].get("clusterIPs") or [], new["spec"].get("clusterIPs") or []
    if before and after and before[0] != after[0] and new["spec"].get("type") != "ExternalName":
        return [wrong("spec.clusterIPs[0]", after, "may not change once set")]
    return []


def check_claim(claim: Object) -> list[StatusCause]:
    return check_claim_spec(claim["spec"], "spec")


def check_claim_spec(spec: Object, path: str) -> list[StatusCause]:
    causes: list[StatusCause] = []
    modes = spec.get("accessModes") or []
    if not modes:
        causes.append(required(f"{path}.accessModes", "at least 1 access mode is required"))
    causes += [unsupported(f"{path}.accessModes", mode, ACCESS_MODES) for mode in modes if mode not in ACCESS_MODES]
    requests = (spec.get("resources") or {}).get("requests") or {}
    if "storage" not in requests:
        causes.append(required(f"{path}.resources[storage]"))
    elif parse_quantity(requests["storage"]) <= 0:
        causes.append(wrong(f"{path}.resources[storage]", requests["storage"], "must be greater than zero"))
    return causes


def check_claim_update(new: Object, old: Object) -> list[StatusCause]:
    """Check that of a claim only the volume (once) and the requested size of a bound one change, and that it never shrinks.

    A size between the volume's and the one asked for before is allowed, to give up growing.
    """
    before, after = {**old["spec"]}, {**new["spec"]}
    asked, wanted = requested_storage(before), requested_storage(after)
    if not before.get("volumeName"):
        after.pop("volumeName", None)
        before.pop("volumeName", None)
        if "storageClassName" not in before:  # a default class may come later
            after.pop("storageClassName", None)
    if new["status"].get("phase") == "Bound":
        before.pop("volumeAttributesClassName", None)
        after.pop("volumeAttributesClassName", None)
        before["resources"], after["resources"] = _without_storage(before), _without_storage(after)
    causes = [] if before == after else [prohibited("spec", _CLAIM_RULE)]
    present = (old["status"].get("capacity") or {}).get("storage", "0")
    if wanted < asked and wanted <= parse_quantity(present):
        causes.append(prohibited("spec.resources.requests.storage", "field can not be less than status.capacity"))
    return causes


def _without_storage(spec: Object) -> Object:
    resources: Object = spec.get("resources") or {}
    requests = {key: value for key, value in (resources.get("requests") or {}).items() if key != "storage"}
    return {**resources, "requests": requests}


def check_quota(quota: Object) -> list[StatusCause]:
    return [
        wrong(f"spec.hard[{name}]", amount, "must be greater than or equal to 0")
        for name, amount in sorted((quota["spec"].get("hard") or {}).items())
        if parse_quantity(amount) < 0
    ]


def check_lease(lease: Object) -> list[StatusCause]:
    spec = lease.get("spec") or {}
    causes: list[StatusCause] = []
    if "leaseDurationSeconds" in spec and spec["leaseDurationSeconds"] <= 0:
        causes.append(wrong("spec.leaseDurationSeconds", spec["leaseDurationSeconds"], "must be greater than 0"))
    if spec.get("leaseTransitions", 0) < 0:
        causes.append(wrong("spec.leaseTransitions", spec["leaseTransitions"], "must be greater than or equal to 0"))
    return causes


def check_api_service(api: Object) -> list[StatusCause]:
    spec, name = api["spec"], api["metadata"]["name"]
    expected = f"{spec.get('version', '')}.{spec.get('group', '')}"
    causes = (
        []
        if name == expected
        else [wrong("metadata.name", name, f'must be `spec.version+"."+spec.group`: "{expected}"')]
    )
    if not spec.get("version"):
        causes.append(required("spec.version"))
    for field, most in (("groupPriorityMinimum", 20000), ("versionPriority", 1000)):
        if not 0 < spec.get(field, 0) <= most:
            value = spec.get(field, 0)
            causes.append(wrong(f"spec.{field}", value, f"must be positive and less than {most}"))
    service = spec.get("service")
    if service is not None:
        causes += [required(f"spec.service.{field}") for field in ("namespace", "name") if not service.get(field)]
        causes += check_port_number(service.get("port"), "spec.service.port")
        if spec.get("insecureSkipTLSVerify") and spec.get("caBundle"):
            causes.append(wrong("spec.insecureSkipTLSVerify", True, "may not be true if caBundle is present"))
    return causes


def check_event(event: Object) -> list[StatusCause]:
    """Check that an event is in the namespace of its object, or in "default" or "kube-system" for a cluster-scoped object."""
    about, namespace = event.get("involvedObject") or {}, event["metadata"]["namespace"]
    given = about.get("namespace", "")
    if given and given != namespace:
        return [wrong("involvedObject.namespace", given, "does not match event.namespace")]
    if not given and namespace not in ("default", "kube-system"):
        return [wrong("involvedObject.namespace", given, "does not match event.namespace")]
    return []
