"""Validation of pods and pod templates, and of updates of pods."""

import copy
from collections.abc import Mapping

from grid.sandbox.apiserver.kinds import Object
from grid.sandbox.apiserver.names import dns_label_problems
from grid.sandbox.apiserver.status import StatusCause, duplicate, prohibited, required, unsupported, wrong
from grid.sandbox.apiserver.validation.containers import check_containers
from grid.sandbox.apiserver.validation.others import check_claim_spec
from grid.sandbox.apiserver.validation.selectors import check_node_selector_terms

_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_ONLY_THESE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def check_pod(pod: Object) -> list[StatusCause]:
    spec = pod.get("spec") or {}
    causes = check_pod_spec(spec, "spec")
    if spec.get("schedulingGates") and spec.get("nodeName"):
        causes.append(prohibited("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
    return causes


def check_pod_spec(spec: Object, path: str) -> list[StatusCause]:
    volumes = {volume.get("name", "") for volume in spec.get("volumes") or ()}
    causes = _check_volumes(spec.get("volumes") or [], f"{path}.volumes")
    causes += check_containers(spec, path, volumes)
    if spec.get("restartPolicy") not in _RESTART_POLICIES:
        causes.append(unsupported(f"{path}.restartPolicy", spec.get("restartPolicy"), _RESTART_POLICIES))
    if spec.get("dnsPolicy") not in _DNS_POLICIES:
        causes.append(unsupported(f"{path}.dnsPolicy", spec.get("dnsPolicy"), _DNS_POLICIES))
    if spec.get("activeDeadlineSeconds", 1) < 1:
        value = spec["activeDeadlineSeconds"]
        causes.append(wrong(f"{path}.activeDeadlineSeconds", value, "must be between 1 and 2147483647, inclusive"))
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        value = spec["terminationGracePeriodSeconds"]
        causes.append(wrong(f"{path}.terminationGracePeriodSeconds", value, "must be greater than or equal to 0"))
    causes += check_tolerations(spec.get("tolerations") or [], f"{path}.tolerations")
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    needed = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if needed is not None:
        where = f"{path}.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
        causes += check_node_selector_terms(needed.get("nodeSelectorTerms") or [], f"{where}.nodeSelectorTerms")
    return causes


def _check_volumes(volumes: list[Object], path: str) -> list[StatusCause]:
    causes: list[StatusCause] = []
    seen: set[str] = set()
    for number, volume in enumerate(volumes):
        here, name = f"{path}[{number}]", volume.get("name", "")
        if not name:
            causes.append(required(f"{here}.name"))
        else:
            causes += [wrong(f"{here}.name", name, problem) for problem in dns_label_problems(name)]
        if name in seen:
            causes.append(duplicate(f"{here}.name", name))
        seen.add(name)
        sources = [key for key in volume if key != "name"]
        causes += [prohibited(f"{here}.{source}", "may not specify more than 1 volume type") for source in sources[1:]]
        causes += _check_source(volume, here)
    return causes


_SOURCE_NAMES = {"persistentVolumeClaim": "claimName", "configMap": "name", "secret": "secretName"}


def _check_source(volume: Object, path: str) -> list[StatusCause]:
    for source, field in _SOURCE_NAMES.items():
        if source in volume and not volume[source].get(field):
            return [required(f"{path}.{source}.{field}")]
    if "hostPath" in volume and not volume["hostPath"].get("path"):
        return [required(f"{path}.hostPath.path")]
    if "ephemeral" in volume:
        return _check_claim_template(volume["ephemeral"].get("volumeClaimTemplate"), path)
    return []


def _check_claim_template(template: Object | None, path: str) -> list[StatusCause]:
    here = f"{path}.ephemeral.volumeClaimTemplate"
    if template is None:
        return [required(here)]
    fields = [key for key, value in (template.get("metadata") or {}).items() if value]
    refused = [field for field in fields if field not in ("labels", "annotations")]
    causes = [prohibited(f"{here}.metadata.{field}", "cannot be set for an ephemeral volume") for field in refused]
    return causes + check_claim_spec(template.get("spec") or {}, f"{here}.spec")


def check_tolerations(tolerations: list[Object], path: str) -> list[StatusCause]:
    causes: list[StatusCause] = []
    for number, toleration in enumerate(tolerations):
        here = f"{path}[{number}]"
        operator = toleration.get("operator") or "Equal"
        if operator not in ("Equal", "Exists"):
            causes.append(unsupported(f"{here}.operator", operator, ("Equal", "Exists")))
        elif not toleration.get("key") and operator != "Exists":
            detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            causes.append(wrong(f"{here}.operator", operator, detail))
        elif operator == "Exists" and toleration.get("value"):
            detail = "value must be empty when `operator` is 'Exists'"
            causes.append(wrong(f"{here}.operator", toleration["value"], detail))
        effect = toleration.get("effect")
        if effect and effect not in _EFFECTS:
            causes.append(unsupported(f"{here}.effect", effect, _EFFECTS))
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            causes.append(wrong(f"{here}.effect", effect or "", detail))
    return causes


def check_pod_update(new: Object, old: Object) -> list[StatusCause]:
    """Check that only images, the deadlines and additional tolerations change, and that scheduling gates only go."""
    before, after = old["spec"], copy.deepcopy(new["spec"])
    for group in ("containers", "initContainers"):
        if len(before.get(group) or ()) != len(after.get(group) or ()):
            return [prohibited(f"spec.{group}", "pod updates may not add or remove containers")]
    for group in ("containers", "initContainers"):
        for mine, its in zip(after.get(group) or (), before.get(group) or (), strict=False):
            if mine.get("image"):
                mine["image"] = its.get("image")
    for field in ("activeDeadlineSeconds", "terminationGracePeriodSeconds"):
        _take_back(after, before, field)
    gates = [gate["name"] for gate in before.get("schedulingGates") or ()]
    causes = [
        prohibited(
            f"spec.schedulingGates[{number}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate['name']}'",
        )
        for number, gate in enumerate(after.get("schedulingGates") or ())
        if gate["name"] not in gates
    ]
    _take_back(after, before, "schedulingGates")
    tolerations = before.get("tolerations") or []
    if all(each in (after.get("tolerations") or []) for each in tolerations):
        after["tolerations"] = tolerations
    return causes if after == before else [*causes, prohibited("spec", _ONLY_THESE)]


def _take_back(after: Object, before: Mapping[str, object], field: str) -> None:
    after.pop(field, None)
    if field in before:
        after[field] = before[field]
