"""`kubectl describe node`, from the node, its pods, its lease and its events."""

from collections.abc import Sequence
from datetime import datetime

from grid.diagnosis.describe.writing import (
    Amount,
    Columns,
    RawObject,
    age,
    full_time,
    small_bool,
    write_annotations,
    write_events,
    write_labels,
)

_ROLE = "node-role.kubernetes.io/"
_OLD_ROLE = "kubernetes.io/role"
_Amounts = dict[str, Amount]
_SYSTEM_INFO = (
    ("Machine ID", "machineID"), ("System UUID", "systemUUID"), ("Boot ID", "bootID"), ("Kernel Version", "kernelVersion"),
    ("OS Image", "osImage"), ("Operating System", "operatingSystem"), ("Architecture", "architecture"),
    ("Container Runtime Version", "containerRuntimeVersion"), ("Kubelet Version", "kubeletVersion"),
)  # fmt: skip


def describe_node(
    node: RawObject,
    *,
    pods: Sequence[RawObject],
    events: Sequence[RawObject],
    lease: RawObject | None,
    now: datetime,
    lease_error: str = "",
) -> str:
    """Return the description. `pods` are all pods of the node, of which those that have ended are left out; `lease` is the node's."""
    out = Columns()
    metadata, spec, status = node["metadata"], node.get("spec", {}), node.get("status", {})
    out.write(0, f"Name:\t{metadata['name']}\n")
    out.write(0, f"Roles:\t{','.join(_roles(metadata.get('labels') or {})) or '<none>'}\n")
    write_labels(out, "Labels", metadata.get("labels"))
    write_annotations(out, metadata.get("annotations"))
    out.write(0, f"CreationTimestamp:\t{full_time(metadata.get('creationTimestamp'))}\n")
    # The order is that of the effects first, then of the keys (kubectl sorts by `effect,key`).
    taints = sorted(spec.get("taints") or (), key=lambda taint: f"{taint.get('effect', '')},{taint['key']}")
    out.write_list("Taints", [_taint(taint) for taint in taints])
    out.write(0, f"Unschedulable:\t{small_bool(spec.get('unschedulable'))}\n")
    _write_lease(out, lease, lease_error)
    _write_conditions(out, status.get("conditions") or ())
    out.write(0, "Addresses:\n")
    for address in status.get("addresses") or ():
        out.write(1, f"{address['type']}:\t{address['address']}\n")
    for title in ("Capacity", "Allocatable"):
        out.write(0, f"{title}:\n")
        for name, text in sorted((status.get(title.lower()) or {}).items()):
            out.write(1, f"{name}:\t{text}\n")
    out.write(0, "System Info:\n")
    for title, field in _SYSTEM_INFO:
        out.write(1, f"{title}:\t{status.get('nodeInfo', {}).get(field, '')}\n")
    networks = {**spec, "podCIDRs": ",".join(spec.get("podCIDRs") or ())}
    out.write_set(0, networks, ("PodCIDR", "podCIDR"), ("PodCIDRs", "podCIDRs"), ("ProviderID", "providerID"))
    alive = [pod for pod in pods if pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")]
    _write_pods(out, alive, status, now)
    _write_allocated(out, alive, status)
    write_events(out, events, now)
    return out.text()


def _roles(labels: RawObject) -> list[str]:
    roles = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE) and key != _ROLE}
    if labels.get(_OLD_ROLE):
        roles.add(labels[_OLD_ROLE])
    return sorted(roles)


def _taint(taint: RawObject) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    effect = f":{taint['effect']}" if taint.get("effect") else ""
    return f"{taint['key']}{value}{effect}"


def _write_lease(out: Columns, lease: RawObject | None, error: str) -> None:
    if lease is None:
        out.write(0, f"Lease:\tFailed to get lease: {error}\n")
        return
    spec = lease.get("spec", {})
    out.write(0, "Lease:\n")
    out.write(1, f"HolderIdentity:\t{spec.get('holderIdentity') or '<unset>'}\n")
    for title, field in (("AcquireTime", "acquireTime"), ("RenewTime", "renewTime")):
        out.write(1, f"{title}:\t{full_time(spec[field]) if spec.get(field) else '<unset>'}\n")


def _write_conditions(out: Columns, conditions: Sequence[RawObject]) -> None:
    if not conditions:
        return
    out.write(0, "Conditions:\n")
    out.write(1, "Type\tStatus\tLastHeartbeatTime\tLastTransitionTime\tReason\tMessage\n")
    out.write(1, "----\t------\t-----------------\t------------------\t------\t-------\n")
    for condition in conditions:
        times = (full_time(condition.get("lastHeartbeatTime")), full_time(condition.get("lastTransitionTime")))
        cells = (condition["type"], condition["status"], *times, condition.get("reason", ""))
        out.write(1, "".join(f"{cell} \t" for cell in cells) + f"{condition.get('message', '')}\n")


def _write_pods(out: Columns, pods: Sequence[RawObject], status: RawObject, now: datetime) -> None:
    allocatable = status.get("allocatable") or status.get("capacity") or {}
    whole = {name: Amount.parse(allocatable.get(name)) for name in ("cpu", "memory")}
    out.write(0, f"Non-terminated Pods:\t({len(pods)} in total)\n")
    out.write(1, "Namespace\tName\t\tCPU Requests\tCPU Limits\tMemory Requests\tMemory Limits\tAge\n")
    out.write(1, "---------\t----\t\t------------\t----------\t---------------\t-------------\t---\n")
    for pod in pods:
        metadata = pod["metadata"]
        requests, limits = _pod_total(pod, "requests"), _pod_total(pod, "limits")
        out.write(1, f"{metadata['namespace']}\t{metadata['name']}\t\t")
        for name in ("cpu", "memory"):
            for total in (requests, limits):
                amount = total.get(name, Amount())
                out.write(0, f"{amount} ({amount.share_of(whole[name])}%)\t")
        out.write(0, f"{age(metadata.get('creationTimestamp'), now)}\n")


def _write_allocated(out: Columns, pods: Sequence[RawObject], status: RawObject) -> None:
    allocatable = status.get("allocatable") or status.get("capacity") or {}
    sums: dict[str, dict[str, Amount]] = {"requests": {}, "limits": {}}
    for pod in pods:
        for part, total in sums.items():
            for name, amount in _pod_total(pod, part).items():
                total[name] = total.get(name, Amount()) + amount
    out.write(0, "Allocated resources:\n")
    out.write(1, "(Total limits may be over 100 percent, i.e., overcommitted.)\n")
    out.write(1, "Resource\tRequests\tLimits\n")
    out.write(1, "--------\t--------\t------\n")
    standard = ["cpu", "memory", "ephemeral-storage", *sorted(n for n in allocatable if n.startswith("hugepages-"))]
    for name in standard:
        whole = Amount.parse(allocatable.get(name))
        cells = [sums[part].get(name, Amount()) for part in ("requests", "limits")]
        out.write(1, "\t".join([name, *(f"{amount} ({amount.share_of(whole)}%)" for amount in cells)]) + "\n")
    for name in sorted(allocatable.keys() - {*standard, "pods"}):
        cells = [sums[part].get(name, Amount()) for part in ("requests", "limits")]
        out.write(1, "\t".join([name, *map(str, cells)]) + "\n")


def _pod_total(pod: RawObject, part: str) -> _Amounts:
    """Return a pod's total `requests` or `limits`: containers and sidecars together, or the largest init container if that is more.
    https://kubernetes.io/docs/concepts/workloads/pods/init-containers/#resource-sharing-within-containers"""
    spec = pod["spec"]
    total, sidecars, peak = _Amounts(), _Amounts(), _Amounts()
    for container in spec.get("containers", ()):
        total = _sum(total, _of(container, part))
    for container in spec.get("initContainers", ()):
        wanted = _of(container, part)
        if container.get("restartPolicy") == "Always":
            total, sidecars = _sum(total, wanted), _sum(sidecars, wanted)
            wanted = sidecars
        else:
            wanted = _sum(wanted, sidecars)
        peak = _larger(peak, wanted)
    total = _larger(total, peak)
    overhead = {name: Amount.parse(text) for name, text in spec.get("overhead", {}).items()}
    if part == "limits":
        overhead = {name: amount for name, amount in overhead.items() if name in total}
    return _sum(total, overhead)


def _of(container: RawObject, part: str) -> _Amounts:
    listed = (container.get("resources") or {}).get(part) or {}
    return {name: Amount.parse(text) for name, text in listed.items()}


def _sum(amounts: _Amounts, other: _Amounts) -> _Amounts:
    return {**amounts, **{name: amounts.get(name, Amount()) + amount for name, amount in other.items()}}


def _larger(amounts: _Amounts, other: _Amounts) -> _Amounts:
    return {**amounts, **{name: amounts.get(name, amount).max(amount) for name, amount in other.items()}}
