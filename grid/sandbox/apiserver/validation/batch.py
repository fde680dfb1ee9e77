"""Validation of Jobs, which are stored and not run."""

from grid.sandbox.apiserver.kinds import Object
from grid.sandbox.apiserver.status import StatusCause, required, unsupported, wrong
from grid.sandbox.apiserver.validation.pod import check_pod_spec

_COUNTS = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished")


def check_job(job: Object) -> list[StatusCause]:
    spec, where = job["spec"], "spec.template.spec.restartPolicy"
    causes = [
        wrong(f"spec.{field}", spec[field], "must be greater than or equal to 0")
        for field in _COUNTS
        if spec.get(field, 0) < 0
    ]
    pod = spec["template"]["spec"]
    causes += check_pod_spec({**pod, "restartPolicy": "Never"}, "spec.template.spec")
    if pod["restartPolicy"] in ("Always", ""):
        causes.append(required(where, 'valid values: "OnFailure", "Never"'))
    elif pod["restartPolicy"] not in ("OnFailure", "Never"):
        causes.append(unsupported(where, pod["restartPolicy"], ("OnFailure", "Never")))
    return causes
