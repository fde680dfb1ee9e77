"""Jobs and CronJobs: what the server fills in, and the selector that it generates for a new Job."""

from grid.sandbox.apiserver.kinds import Object
from grid.sandbox.apiserver.podtemplates import pod_spec_defaults

JOBS, CRON_JOBS = "jobs.batch", "cronjobs.batch"
UID_LABEL, NAME_LABEL = "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"
OLD_UID_LABEL, OLD_NAME_LABEL = "controller-uid", "job-name"


def job_defaults(job: Object) -> None:
    spec = job.setdefault("spec", {})
    _template_defaults(spec)
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("manualSelector", False)
    policy = spec.get("podFailurePolicy")
    spec.setdefault("podReplacementPolicy", "TerminatingOrFailed" if policy is None else "Failed")
    for rule in (policy or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            pattern.setdefault("status", "True")
    _inherit_labels(job)
    job.setdefault("status", {})


def cron_job_defaults(cron_job: Object) -> None:
    spec = cron_job.setdefault("spec", {})
    spec.setdefault("concurrencyPolicy", "Allow")
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)
    template = spec.setdefault("jobTemplate", {})
    template.setdefault("metadata", {})
    _template_defaults(template.setdefault("spec", {}))
    cron_job.setdefault("status", {})


def _template_defaults(spec: Object) -> None:
    template = spec.setdefault("template", {})
    template.setdefault("metadata", {})
    pod_spec_defaults(template.setdefault("spec", {}))


def _inherit_labels(job: Object) -> None:
    labels = job["spec"]["template"]["metadata"].get("labels")
    if labels and not job["metadata"].get("labels"):
        job["metadata"]["labels"] = dict(labels)


def generate_selector(job: Object) -> None:
    """Give a new Job the selector and the labels by which its pods are its own, unless it chooses its selector itself."""
    spec, metadata = job["spec"], job["metadata"]
    if not spec["manualSelector"]:
        labels = spec["template"]["metadata"].setdefault("labels", {})
        for key in (OLD_UID_LABEL, UID_LABEL):
            labels.setdefault(key, metadata["uid"])
        for key in (OLD_NAME_LABEL, NAME_LABEL):
            labels.setdefault(key, metadata["name"])
        wanted = spec.setdefault("selector", {}).setdefault("matchLabels", {})
        wanted.setdefault(UID_LABEL, metadata["uid"])
    _inherit_labels(job)
