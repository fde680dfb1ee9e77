"""Fetches whole objects and logs from the cluster on request, or describes them as kubectl does; an error becomes a sentence."""

import asyncio
from collections.abc import Awaitable
from datetime import datetime
from functools import partial
from typing import NamedTuple

import msgspec

from grid.core.errors import ClusterUnavailable, GridError, NotAllowed, NotFound, TooManyRequests
from grid.core.translation import gettext as _
from grid.diagnosis.describe import describe_node, describe_pod
from grid.edge import textwork
from grid.edge.textwork import TextWorkFailed
from grid.kube.api import KubeApi
from grid.kube.objects import RawObject
from grid.kube.redaction import Redactor
from grid.kube.resources import EVENTS, LEASES, NODES, PODS, Resource
from grid.kube.trouble import ClusterTrouble, sentence_of, trouble_of

TIMEOUT_SECONDS = 10.0
LEASE_NAMESPACE = "kube-node-lease"
_ENDED = "status.phase!=Succeeded,status.phase!=Failed"


class Fetched(NamedTuple):
    """A fetched text, or in `problem` the reason why there is none."""

    text: str = ""
    problem: str = ""


async def fetched(text: Awaitable[str]) -> Fetched:
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            return Fetched(text=await text)
    except (GridError, TimeoutError) as error:
        return Fetched(problem=problem_of(error))


def problem_of(error: GridError | TimeoutError) -> str:
    """Return the sentence about an error of the cluster, with what to do."""
    match error:
        case TextWorkFailed():
            return str(error)
        case NotFound():
            return _("It is gone from the cluster, so there is nothing to fetch.")
        case NotAllowed():
            return sentence_of(error)
        case ClusterUnavailable() if "/containerLogs/" in str(error):  # the API server asks the node's kubelet
            return _(
                "The pod's node did not answer, so its log cannot be read now. Reload this page in a minute; a lost node's log is gone."
            )
        case ClusterUnavailable() | TooManyRequests() | TimeoutError():
            trouble = ClusterTrouble.SILENT if isinstance(error, TimeoutError) else trouble_of(error)
            return _("{trouble}. Reload this page in a few seconds.", trouble=trouble.value)
    return _("The cluster refused: {error}", error=error)


async def node_description(api: KubeApi, name: str, *, now: datetime) -> str:
    """Return the node's description. Raise NotFound when the node is gone; a lease that cannot be read is mentioned in the text."""
    node = await api.get(NODES, name)
    pods = await _all(api, PODS, field_selector=f"spec.nodeName={name},{_ENDED}")
    events = await _all(api, EVENTS, field_selector=f"involvedObject.kind=Node,involvedObject.name={name}")
    lease, problem = None, ""
    try:
        lease = await api.get(LEASES, name, namespace=LEASE_NAMESPACE)
    except NotFound as error:
        problem = str(error)
    except GridError as error:
        problem = _("the lease cannot be read: {error}", error=error)
    work = partial(describe_node, node, pods=pods, events=events, lease=lease, now=now, lease_error=problem)
    return await textwork.workers.run(work)


async def pod_description(
    api: KubeApi, namespace: str, name: str, *, now: datetime, redactor: Redactor | None = None
) -> str:
    """Return the pod's description, without what the redactor takes out."""
    pod = await api.get(PODS, name, namespace=namespace)
    if redactor is not None:
        pod = await textwork.workers.run(redactor.object, pod)
    selector = f"involvedObject.kind=Pod,involvedObject.name={name},involvedObject.uid={pod['metadata'].get('uid', '')}"
    events = await _all(api, EVENTS, namespace=namespace, field_selector=selector)
    return await textwork.workers.run(partial(describe_pod, pod, events=events, now=now))


async def _all(api: KubeApi, resource: Resource, *, field_selector: str, namespace: str = "") -> list[RawObject]:
    objects, token = list[RawObject](), ""
    list_page = partial(api.list_page, resource, namespace=namespace, field_selector=field_selector)
    while True:
        page = msgspec.json.decode(await list_page(continue_token=token))
        objects += page["items"]
        token = page["metadata"].get("continue", "")
        if not token:
            return objects
