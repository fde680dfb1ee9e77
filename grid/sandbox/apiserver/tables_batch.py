"""The cells of Jobs, CronJobs and endpoints in tables."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from grid.sandbox.apiserver.ages import age, human_duration, parse_time, since
from grid.sandbox.apiserver.kinds import Object
from grid.sandbox.apiserver.selectors import selector_text

_MOST_SHOWN = 3


def container_texts(template: Object | None) -> tuple[str, str]:
    containers = ((template or {}).get("spec") or {}).get("containers") or []
    return ",".join(each["name"] for each in containers), ",".join(each.get("image", "") for each in containers)


def job_cells(job: Object, now: datetime) -> list[Any]:
    spec, status = job["spec"], job.get("status") or {}
    succeeded, parallel = status.get("succeeded", 0), spec.get("parallelism") or 0
    if spec.get("completions") is not None:
        completions = f"{succeeded}/{spec['completions']}"
    else:
        completions = f"{succeeded}/1 of {parallel}" if parallel > 1 else f"{succeeded}/1"
    start, end = status.get("startTime"), status.get("completionTime")
    duration = human_duration((parse_time(end) if end else now) - parse_time(start)) if start else ""
    names, images = container_texts(spec.get("template"))
    selector = selector_text(spec.get("selector"))
    return [job["metadata"]["name"], _job_state(job), completions, duration, age(job, now), names, images, selector]


def _job_state(job: Object) -> str:
    true = {item["type"] for item in (job.get("status") or {}).get("conditions") or () if item["status"] == "True"}
    for state in ("Complete", "Failed"):
        if state in true:
            return state
    if "deletionTimestamp" in job["metadata"]:
        return "Terminating"
    return next((state for state in ("Suspended", "FailureTarget", "SuccessCriteriaMet") if state in true), "Running")


def cron_job_cells(cron_job: Object, now: datetime) -> list[Any]:
    spec, status = cron_job["spec"], cron_job.get("status") or {}
    names, images = container_texts(spec["jobTemplate"]["spec"].get("template"))
    last = status.get("lastScheduleTime")
    return [
        cron_job["metadata"]["name"],
        spec["schedule"],
        spec.get("timeZone", "<none>"),
        str(bool(spec.get("suspend"))),
        len(status.get("active") or ()),
        since(last, now) if last else "<none>",
        age(cron_job, now),
        names,
        images,
        selector_text(spec["jobTemplate"]["spec"].get("selector")) or "<none>",
    ]


def endpoint_slice_cells(obj: Object, now: datetime) -> list[Any]:
    ports = [str(port.get("port", "*")) for port in obj.get("ports") or ()]
    addresses = [address for endpoint in obj.get("endpoints") or () for address in endpoint.get("addresses") or ()]
    name = obj["metadata"]["name"]
    return [name, obj.get("addressType", ""), _few(ports, "<unset>"), _few(addresses, "<unset>"), age(obj, now)]


def endpoints_cells(obj: Object, now: datetime) -> list[Any]:
    found: list[str] = []
    for subset in obj.get("subsets") or ():
        addresses = [item["ip"] for item in subset.get("addresses") or ()]
        ports = [port["port"] for port in subset.get("ports") or ()]
        found += [f"{address}:{port}" for port in ports for address in addresses] if ports else addresses
    return [obj["metadata"]["name"], _few(found, "<none>"), age(obj, now)]


def _few(items: Sequence[str], none: str) -> str:
    more = f" + {len(items) - _MOST_SHOWN} more..." if len(items) > _MOST_SHOWN else ""
    return ",".join(items[:_MOST_SHOWN]) + more if items else none
