"""The options of `pods/log`, checked as the real server checks them, and turned into a request to the kubelet.
Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from grid.sandbox.apiserver.bodies import parse_int
from grid.sandbox.apiserver.kinds import Object
from grid.sandbox.apiserver.status import StatusCause, bad_request, invalid, prohibited, wrong

_PASSED = ("follow", "previous", "timestamps", "sinceSeconds", "sinceTime", "tailLines", "limitBytes")
_TRUE = ("1", "true", "True")


@dataclass(frozen=True, slots=True)
class LogRequest:
    node: str  # "" while the pod is not on a node
    path: str
    query: Mapping[str, str]
    follow: bool


def log_request(pod: Object, query: Mapping[str, str]) -> LogRequest:
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    _check_options(name, query)
    container = _container(pod, query.get("container", ""))
    return LogRequest(
        node=pod["spec"].get("nodeName") or "",
        path=f"/containerLogs/{namespace}/{name}/{container}",
        query={key: query[key] for key in _PASSED if query.get(key)},
        follow=query.get("follow") in _TRUE,
    )


def _check_options(name: str, query: Mapping[str, str]) -> None:
    numbers = {key: parse_int(query[key]) for key in ("tailLines", "sinceSeconds", "limitBytes") if key in query}
    causes: list[StatusCause] = []
    if numbers.get("tailLines", 0) < 0:
        causes.append(wrong("tailLines", numbers["tailLines"], "must be greater than or equal to 0"))
    if "limitBytes" in numbers and numbers["limitBytes"] < 1:
        causes.append(wrong("limitBytes", numbers["limitBytes"], "must be greater than 0"))
    if "sinceSeconds" in query and "sinceTime" in query:
        causes.append(prohibited("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
    elif "sinceSeconds" in numbers and numbers["sinceSeconds"] < 1:
        causes.append(wrong("sinceSeconds", numbers["sinceSeconds"], "must be greater than 0"))
    if causes:
        raise invalid("PodLogOptions", "", name, causes)


def _container(pod: Object, asked: str) -> str:
    spec, name = pod["spec"], pod["metadata"]["name"]
    groups = ("initContainers", "containers", "ephemeralContainers")
    known = [each["name"] for group in groups for each in spec.get(group) or ()]
    if asked:
        if asked not in known:
            raise bad_request(f"container {asked} is not valid for pod {name}")
        return asked
    default = (pod["metadata"].get("annotations") or {}).get("kubectl.kubernetes.io/default-container")
    if default in known:
        return str(default)
    if len(spec["containers"]) > 1:
        raise bad_request(f"a container name must be specified for pod {name}, choose one of: [{' '.join(known)}]")
    return str(spec["containers"][0]["name"])
