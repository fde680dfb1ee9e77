"""Validation of Jobs and CronJobs."""

from grid.core.cron import BadSchedule, find_zone, parse_schedule
from grid.sandbox.apiserver.batch import NAME_LABEL, OLD_NAME_LABEL, OLD_UID_LABEL, UID_LABEL
from grid.sandbox.apiserver.kinds import Object
from grid.sandbox.apiserver.names import dns_label_problems
from grid.sandbox.apiserver.selectors import selects
from grid.sandbox.apiserver.status import StatusCause, prohibited, required, unsupported, wrong
from grid.sandbox.apiserver.validation.metadata import check_labels
from grid.sandbox.apiserver.validation.pod import check_pod_spec
from grid.sandbox.apiserver.validation.selectors import check_label_selector

_NOT_NEGATIVE = "must be greater than or equal to 0"
_COUNTS = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished")
_MODES = ("NonIndexed", "Indexed")
_REPLACEMENTS = ("Failed", "TerminatingOrFailed")
_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_CONCURRENCY = ("Allow", "Forbid", "Replace")
_MOST_INDEXED_PODS = 100_000
_LONGEST_CRON_NAME = 52
_NOT_HERE = "is not supported by the embedded cluster"
_LEFT_OUT = ("backoffLimitPerIndex", "maxFailedIndexes", "successPolicy")
_IMMUTABLE = ("completionMode", "podFailurePolicy", "managedBy")
# What may change in the template of a Job that is suspended and has not started.
_SCHEDULING = ("nodeSelector", "tolerations", "affinity", "schedulingGates")


def check_job(job: Object) -> list[StatusCause]:
    spec, metadata = job["spec"], job["metadata"]
    causes = _check_generated_selector(job) + _check_job_spec(spec, "spec")
    selector = spec.get("selector")
    if selector is None:
        causes.append(required("spec.selector"))
    else:
        causes += check_label_selector(selector, "spec.selector")
        labels = spec["template"]["metadata"].get("labels") or {}
        if not causes and not selects(selector, labels):
            detail = "`selector` does not match template `labels`"
            causes.append(wrong("spec.template.metadata.labels", labels, detail))
    if spec["completionMode"] == "Indexed" and spec.get("completions", 0) > 0:
        longest = f"{metadata['name']}-{spec['completions'] - 1}"
        if dns_label_problems(longest):
            detail = f"will not able to create pod with invalid DNS label: {longest}"
            causes.append(wrong("metadata.name", metadata["name"], detail))
    return causes


def _check_generated_selector(job: Object) -> list[StatusCause]:
    spec, uid, name = job["spec"], job["metadata"]["uid"], job["metadata"]["name"]
    if spec["manualSelector"] or spec.get("selector") is None:
        return []
    expected = {OLD_UID_LABEL: uid, OLD_NAME_LABEL: name, UID_LABEL: uid, NAME_LABEL: name}
    labels = spec["template"]["metadata"].get("labels") or {}
    causes = []
    for key, value in expected.items():
        path = f"spec.template.metadata.labels[{key}]"
        if key not in labels:
            causes.append(required(path, f"must be '{value}'"))
        elif labels[key] != value:
            causes.append(wrong(path, labels, f"must be '{value}'"))
    if not check_label_selector(spec["selector"], "") and not selects(spec["selector"], expected):
        causes.append(wrong("spec.selector", spec["selector"], "`selector` not auto-generated"))
    return causes


def _check_job_spec(spec: Object, path: str) -> list[StatusCause]:
    causes = [wrong(f"{path}.{field}", spec[field], _NOT_NEGATIVE) for field in _COUNTS if (spec.get(field) or 0) < 0]
    causes += [prohibited(f"{path}.{field}", _NOT_HERE) for field in _LEFT_OUT if field in spec]
    mode = spec.get("completionMode", "NonIndexed")
    if mode not in _MODES:
        causes.append(unsupported(f"{path}.completionMode", mode, _MODES))
    if mode == "Indexed" and spec.get("completions") is None:
        causes.append(required(f"{path}.completions", "when completion mode is Indexed"))
    if mode == "Indexed" and (spec.get("parallelism") or 0) > _MOST_INDEXED_PODS:
        detail = f"must be less than or equal to {_MOST_INDEXED_PODS} when completion mode is Indexed"
        causes.append(wrong(f"{path}.parallelism", spec["parallelism"], detail))
    policy = spec.get("podFailurePolicy")
    for number, rule in enumerate((policy or {}).get("rules") or ()):
        causes += _check_rule(rule, f"{path}.podFailurePolicy.rules[{number}]")
    replacement, allowed = spec.get("podReplacementPolicy"), _REPLACEMENTS if policy is None else ("Failed",)
    if replacement is not None and replacement not in allowed:
        causes.append(unsupported(f"{path}.podReplacementPolicy", replacement, allowed))
    return causes + _check_template(spec["template"], f"{path}.template", has_policy=policy is not None)


def _check_template(template: Object, path: str, *, has_policy: bool) -> list[StatusCause]:
    pod = template["spec"]
    causes = check_labels(f"{path}.labels", template["metadata"].get("labels"))
    causes += check_pod_spec({**pod, "restartPolicy": "Never"}, f"{path}.spec")
    policy, where = pod["restartPolicy"], f"{path}.spec.restartPolicy"
    if policy in ("Always", ""):
        causes.append(required(where, 'valid values: "OnFailure", "Never"'))
    elif policy not in ("OnFailure", "Never"):
        causes.append(unsupported(where, policy, ("OnFailure", "Never")))
    elif has_policy and policy != "Never":
        causes.append(wrong(where, policy, 'only "Never" is supported when podFailurePolicy is specified'))
    return causes


def _check_rule(rule: Object, path: str) -> list[StatusCause]:
    causes: list[StatusCause] = []
    action, codes, conditions = rule.get("action"), rule.get("onExitCodes"), rule.get("onPodConditions")
    if not action:
        causes.append(required(f"{path}.action", 'valid values: ["Count" "FailIndex" "FailJob" "Ignore"]'))
    elif action == "FailIndex":
        causes.append(wrong(f"{path}.action", action, "requires the backoffLimitPerIndex to be set"))
    elif action not in _ACTIONS:
        causes.append(unsupported(f"{path}.action", action, _ACTIONS))
    if codes is not None and codes.get("operator") not in ("In", "NotIn"):
        causes.append(unsupported(f"{path}.onExitCodes.operator", codes.get("operator"), ("In", "NotIn")))
    if codes is not None and conditions:
        detail = "specifying both OnExitCodes and OnPodConditions is not supported"
        causes.append(StatusCause(path, "FieldValueInvalid", f"Invalid value: {detail}"))
    if codes is None and not conditions:
        detail = "specifying one of OnExitCodes and OnPodConditions is required"
        causes.append(StatusCause(path, "FieldValueInvalid", f"Invalid value: {detail}"))
    return causes


def check_job_update(new: Object, old: Object) -> list[StatusCause]:
    after, before = new["spec"], old["spec"]
    causes: list[StatusCause] = []
    completions = after.get("completions")
    if completions != before.get("completions"):
        if before["completionMode"] != "Indexed":
            causes.append(_immutable("completions", completions))
        elif completions != after["parallelism"]:
            detail = "can only be modified in tandem with spec.parallelism"
            causes.append(wrong("spec.completions", completions, detail))
    if after.get("selector") != before.get("selector"):
        causes.append(_immutable("selector", after.get("selector")))
    waits = before["suspend"] and "startTime" not in (old.get("status") or {})
    if _fixed(after["template"], waits=waits) != _fixed(before["template"], waits=waits):
        causes.append(_immutable("template", after["template"]))
    return causes + [
        _immutable(field, after.get(field)) for field in _IMMUTABLE if after.get(field) != before.get(field)
    ]


def _fixed(template: Object, *, waits: bool) -> Object:
    if not waits:
        return template
    spec = {key: value for key, value in template["spec"].items() if key not in _SCHEDULING}
    metadata = {key: value for key, value in template["metadata"].items() if key not in ("labels", "annotations")}
    return {"metadata": metadata, "spec": spec}


def _immutable(field: str, value: object) -> StatusCause:
    return wrong(f"spec.{field}", value, "field is immutable")


def check_cron_job(cron_job: Object) -> list[StatusCause]:
    spec, name = cron_job["spec"], cron_job["metadata"]["name"]
    causes: list[StatusCause] = []
    if len(name) > _LONGEST_CRON_NAME:
        causes.append(wrong("metadata.name", name, f"must be no more than {_LONGEST_CRON_NAME} characters"))
    causes += _check_schedule(spec.get("schedule", ""))
    if spec.get("startingDeadlineSeconds", 0) < 0:
        causes.append(wrong("spec.startingDeadlineSeconds", spec["startingDeadlineSeconds"], _NOT_NEGATIVE))
    causes += _check_zone(spec["timeZone"]) if "timeZone" in spec else []
    if spec["concurrencyPolicy"] not in _CONCURRENCY:
        causes.append(unsupported("spec.concurrencyPolicy", spec["concurrencyPolicy"], _CONCURRENCY))
    inner = spec["jobTemplate"]["spec"]
    causes += _check_job_spec(inner, "spec.jobTemplate.spec")
    if inner.get("selector") is not None:
        path = "spec.jobTemplate.spec.selector"
        causes.append(wrong(path, inner["selector"], "`selector` will be auto-generated"))
    if inner.get("manualSelector"):
        causes.append(unsupported("spec.jobTemplate.spec.manualSelector", True, ("nil", "false")))
    for field in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        if spec[field] < 0:
            causes.append(wrong(f"spec.{field}", spec[field], _NOT_NEGATIVE))
    return causes


def _check_schedule(schedule: str) -> list[StatusCause]:
    if not schedule:
        return [required("spec.schedule")]
    if "TZ" in schedule:
        detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        return [wrong("spec.schedule", schedule, detail)]
    try:
        parse_schedule(schedule)
    except BadSchedule as problem:
        return [wrong("spec.schedule", schedule, str(problem))]
    return []


def _check_zone(zone: str) -> list[StatusCause]:
    if not zone:
        return [wrong("spec.timeZone", zone, "timeZone must be nil or non-empty string")]
    if zone.lower() == "local":
        detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        return [wrong("spec.timeZone", zone, detail)]
    try:
        find_zone(zone)
    except ValueError as problem:
        return [wrong("spec.timeZone", zone, str(problem))]
    return []
