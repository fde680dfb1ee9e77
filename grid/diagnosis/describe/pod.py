"""`kubectl describe pod`, from the pod and its events."""

from collections.abc import Sequence
from datetime import datetime

from grid.diagnosis.describe.columns import Columns
from grid.diagnosis.describe.common import RawObject, write_annotations, write_events, write_labels
from grid.diagnosis.describe.containers import write_containers
from grid.diagnosis.describe.values import age, full_time
from grid.diagnosis.describe.volumes import write_volumes


def describe_pod(pod: RawObject, *, events: Sequence[RawObject], now: datetime) -> str:
    out = Columns()
    spec, status = pod["spec"], pod.get("status", {})
    _write_head(out, pod, now)
    _write_addresses(out, pod)
    if spec.get("initContainers"):
        write_containers(out, "Init Containers", spec["initContainers"], status.get("initContainerStatuses"), pod)
    write_containers(out, "Containers", spec["containers"], status.get("containerStatuses"), pod)
    if spec.get("ephemeralContainers"):
        statuses = status.get("ephemeralContainerStatuses")
        write_containers(out, "Ephemeral Containers", spec["ephemeralContainers"], statuses, pod)
    _write_conditions(out, spec, status)
    write_volumes(out, spec.get("volumes") or ())
    if status.get("qosClass"):
        out.write(0, f"QoS Class:\t{status['qosClass']}\n")
    write_labels(out, "Node-Selectors", spec.get("nodeSelector"))
    _write_tolerations(out, spec.get("tolerations") or ())
    _write_spread(out, spec.get("topologySpreadConstraints") or ())
    write_events(out, events, now)
    return out.text()


def _write_head(out: Columns, pod: RawObject, now: datetime) -> None:
    metadata, spec, status = pod["metadata"], pod["spec"], pod.get("status", {})
    out.write(0, f"Name:\t{metadata['name']}\nNamespace:\t{metadata['namespace']}\n")
    if spec.get("priority") is not None:
        out.write(0, f"Priority:\t{spec['priority']}\n")
    for title, field in (("Priority Class Name", "priorityClassName"), ("Runtime Class Name", "runtimeClassName")):
        if spec.get(field):
            out.write(0, f"{title}:\t{spec[field]}\n")
    out.write(0, f"Service Account:\t{spec.get('serviceAccountName', '')}\n")
    node = f"{spec['nodeName']}/{status.get('hostIP', '')}" if spec.get("nodeName") else "<none>"
    out.write(0, f"Node:\t{node}\n")
    if status.get("startTime"):
        out.write(0, f"Start Time:\t{full_time(status['startTime'])}\n")
    write_labels(out, "Labels", metadata.get("labels"))
    write_annotations(out, metadata.get("annotations"))
    if metadata.get("deletionTimestamp") and status.get("phase") not in ("Failed", "Succeeded"):
        out.write(0, f"Status:\tTerminating (lasts {age(metadata['deletionTimestamp'], now)})\n")
        out.write(0, f"Termination Grace Period:\t{metadata.get('deletionGracePeriodSeconds', 0)}s\n")
    else:
        out.write(0, f"Status:\t{status.get('phase', '')}\n")
    for title, field in (("Reason", "reason"), ("Message", "message")):
        if status.get(field):
            out.write(0, f"{title}:\t{status[field]}\n")
    seccomp = (spec.get("securityContext") or {}).get("seccompProfile")
    if seccomp:
        out.write(0, f"SeccompProfile:\t{seccomp['type']}\n")
        if seccomp["type"] == "Localhost":
            out.write(0, f"LocalhostProfile:\t{seccomp.get('localhostProfile', '')}\n")


def _write_addresses(out: Columns, pod: RawObject) -> None:
    status = pod.get("status", {})
    out.write(0, f"IP:\t{status.get('podIP', '')}\n")
    out.write(0, "IPs:\n" if status.get("podIPs") else "IPs:\t<none>\n")
    for address in status.get("podIPs") or ():
        out.write(1, f"IP:\t{address.get('ip', '')}\n")
    controller = next((o for o in pod["metadata"].get("ownerReferences") or () if o.get("controller")), None)
    if controller:
        out.write(0, f"Controlled By:\t{controller['kind']}/{controller['name']}\n")
    if status.get("nominatedNodeName"):
        out.write(0, f"NominatedNodeName:\t{status['nominatedNodeName']}\n")


def _write_conditions(out: Columns, spec: RawObject, status: RawObject) -> None:
    conditions = status.get("conditions") or ()
    gates = spec.get("readinessGates")
    if gates:
        out.write(0, "Readiness Gates:\n  Type\tStatus\n")
        states = {condition["type"]: condition["status"] for condition in conditions}
        for gate in gates:
            out.write(1, f"{gate['conditionType']} \t{states.get(gate['conditionType'], '<none>')} \n")
    if conditions:
        out.write(0, "Conditions:\n  Type\tStatus\n")
        for condition in conditions:
            out.write(1, f"{condition['type']} \t{condition['status']} \n")


def _write_tolerations(out: Columns, tolerations: Sequence[RawObject]) -> None:
    if not tolerations:
        out.write(0, "Tolerations:\t<none>\n")
    for index, toleration in enumerate(sorted(tolerations, key=lambda toleration: str(toleration.get("key", "")))):
        text = toleration.get("key", "")
        text += f"={toleration['value']}" if toleration.get("value") else ""
        text += f":{toleration['effect']}" if toleration.get("effect") else ""
        if toleration.get("operator") == "Exists" and not toleration.get("value"):
            text += " op=Exists" if text else "op=Exists"
        if toleration.get("tolerationSeconds") is not None:
            text += f" for {toleration['tolerationSeconds']}s"
        out.write(0, f"{'Tolerations:' if index == 0 else ''}\t{text}\n")


def _write_spread(out: Columns, constraints: Sequence[RawObject]) -> None:
    for index, constraint in enumerate(sorted(constraints, key=lambda constraint: str(constraint["topologyKey"]))):
        text = f"{constraint['topologyKey']}:{constraint['whenUnsatisfiable']} when max skew {constraint['maxSkew']} is exceeded"
        if constraint.get("labelSelector") is not None:
            pairs = constraint["labelSelector"].get("matchLabels") or {}
            text += " for selector " + ",".join(f"{key}={pairs[key]}" for key in sorted(pairs))
        out.write(0, f"{'Topology Spread Constraints:' if index == 0 else ''}\t{text}\n")
