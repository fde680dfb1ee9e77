"""`kubectl describe node`, from the node, its pods, its lease and its events."""

from collections.abc import Sequence
from datetime import datetime

from grid.diagnosis.describe.columns import Columns
from grid.diagnosis.describe.common import RawObject, write_annotations, write_events, write_labels
from grid.diagnosis.describe.resources import pod_total
from grid.diagnosis.describe.values import Amount, age, full_time, small_bool

_ROLE = "node-role.kubernetes.io/"
_OLD_ROLE = "kubernetes.io/role"
_SYSTEM_INFO = (
    ("Machine ID", "machineID"),
    ("System UUID", "systemUUID"),
    ("Boot ID", "bootID"),
    ("Kernel Version", "kernelVersion"),
    ("OS Image", "osImage"),
    ("Operating System", "operatingSystem"),
    ("Architecture", "architecture"),
    ("Container Runtime Version", "containerRuntimeVersion"),
    ("Kubelet Version", "kubeletVersion"),
)


def describe_node(
    node: RawObject,
    *,
    pods: Sequence[RawObject],
    events: Sequence[RawObject],
    lease: RawObject | None,
    now: datetime,
    lease_error: str = "",
) -> str:
    """Return the description. `pods` are all pods of the node, and those that have ended are left out; `lease` is the node's in
    kube-node-lease."""
    out = Columns()
    metadata, spec, status = node["metadata"], node.get("spec", {}), node.get("status", {})
    out.write(0, f"Name:\t{metadata['name']}\n")
    out.write(0, f"Roles:\t{','.join(_roles(metadata.get('labels') or {})) or '<none>'}\n")
    write_labels(out, "Labels", metadata.get("labels"))
    write_annotations(out, metadata.get("annotations"))
    out.write(0, f"CreationTimestamp:\t{full_time(metadata.get('creationTimestamp'))}\n")
    _write_taints(out, spec.get("taints") or ())
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
    for title, value in (
        ("PodCIDR", spec.get("podCIDR")),
        ("PodCIDRs", ",".join(spec.get("podCIDRs") or ())),
        ("ProviderID", spec.get("providerID")),
    ):
        if value:
            out.write(0, f"{title}:\t{value}\n")
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


def _write_taints(out: Columns, taints: Sequence[RawObject]) -> None:
    if not taints:
        out.write(0, "Taints:\t<none>\n")
    # The order is that of the effects first, then of the keys (kubectl sorts by `effect,key`).
    for index, taint in enumerate(sorted(taints, key=lambda taint: f"{taint.get('effect', '')},{taint['key']}")):
        value = f"={taint['value']}" if taint.get("value") else ""
        effect = f":{taint['effect']}" if taint.get("effect") else ""
        out.write(0, f"{'Taints:' if index == 0 else ''}\t{taint['key']}{value}{effect}\n")


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
        requests, limits = pod_total(pod, "requests"), pod_total(pod, "limits")
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
            for name, amount in pod_total(pod, part).items():
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
