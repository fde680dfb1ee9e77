"""Describes an object as `kubectl describe` does, from whole objects that are fetched on request."""

from datetime import datetime
from functools import partial

import msgspec

from grid.core.errors import GridError, NotFound
from grid.core.translation import gettext as _
from grid.diagnosis.describe import describe_node, describe_pod
from grid.edge import textwork
from grid.kube.api import KubeApi
from grid.kube.objects import RawObject
from grid.kube.redaction import Redactor
from grid.kube.resources import EVENTS, LEASES, NODES, PODS, Resource

LEASE_NAMESPACE = "kube-node-lease"
_ENDED = "status.phase!=Succeeded,status.phase!=Failed"


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
    api: KubeApi,
    namespace: str,
    name: str,
    *,
    now: datetime,
    redactor: Redactor | None = None,
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
    while True:
        page = msgspec.json.decode(
            await api.list_page(resource, namespace=namespace, field_selector=field_selector, continue_token=token)
        )
        objects += page["items"]
        token = page["metadata"].get("continue", "")
        if not token:
            return objects
