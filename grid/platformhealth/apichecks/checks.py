"""The checks: what Compute Grid needs of a cluster's API, each as small as it can be; none starts a program.

They ask by `KubeApi`, as all of Compute Grid does. `tests/contract` runs them against each cluster that it is given.
"""

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any, cast

import msgspec

from grid.core.errors import Conflict, Rejected
from grid.core.translation import gettext as _
from grid.kube.objects import RawObject
from grid.kube.resources import CONFIG_MAPS, EVENTS, PODS, SECRETS, SERVICES, VOLUME_CLAIMS
from grid.platformhealth.apicheckresults import NeededRight
from grid.platformhealth.apichecks.running import ApiCheck, access_review
from grid.platformhealth.apichecks.scratch import CheckFailed, Scratch, must_refuse, until
from grid.platformhealth.apichecks.workloadchecks import WORKLOAD_CHECKS

WATCH_SECONDS = 10
GARBAGE_SECONDS = 60.0


async def _anchor(scratch: Scratch) -> None:
    scratch.anchor = await scratch.create(
        CONFIG_MAPS, "anchor", data={"why": _("It owns what checks of the API make.")}
    )
    read = await scratch.get(CONFIG_MAPS, "anchor")
    if read["metadata"]["uid"] != scratch.anchor["metadata"]["uid"]:
        raise CheckFailed(_("The object that was read is not the one that was created."))
    second = scratch.create(CONFIG_MAPS, "anchor")
    await must_refuse(second, Conflict, _("A second object with the same name was not refused."))
    if not await scratch.is_gone(CONFIG_MAPS, "never-made"):
        raise CheckFailed(_("An object that was never created can be read."))


async def _dry_run(scratch: Scratch) -> None:
    await scratch.create(PODS, "dry", dry_run=True, spec=scratch.pod_spec())
    if not await scratch.is_gone(PODS, "dry"):
        raise CheckFailed(_("The pod of a dry run was created."))
    wrong = scratch.create(PODS, "wrong", dry_run=True, spec=scratch.pod_spec() | {"containers": []})
    await must_refuse(wrong, Rejected, _("A dry run of a pod without containers was not refused."))


async def _access_review(scratch: Scratch) -> None:
    review = await access_review(scratch, NeededRight("list", "pods"))
    if not isinstance(review.get("status", {}).get("allowed"), bool):
        raise CheckFailed(_("The answer does not say whether it is allowed."))


async def _pods(scratch: Scratch) -> None:
    for part in ("pod-a", "pod-b"):
        await scratch.create(PODS, part, spec=scratch.pod_spec())
    if (await _note(scratch, "changed"))["metadata"].get("annotations", {}).get("note") != "changed":
        raise CheckFailed(_("A merge patch was accepted and changed nothing."))
    first = await scratch.listed(PODS, limit=1)
    rest = await scratch.listed(PODS, limit=1, token=str(first["metadata"].get("continue", "")))
    names = {pod["metadata"]["name"] for page in (first, rest) for pod in page["items"]}
    if not {scratch.name("pod-a"), scratch.name("pod-b")} <= names:
        raise CheckFailed(_("Two pages of one object each do not have both pods."))


async def _metadata_only(scratch: Scratch) -> None:
    pods = (await scratch.listed(PODS, metadata_only=True)).get("items") or []
    if any("spec" in pod for pod in pods):
        raise CheckFailed(_("A list of metadata alone has whole objects."))


async def _watch(scratch: Scratch) -> None:
    events = _events(scratch, await _version(scratch))
    await scratch.create(PODS, "watched", spec=scratch.pod_spec())
    await scratch.delete(PODS, "watched")
    name, seen = scratch.name("watched"), set[str]()
    async for event in events:
        if event["object"]["metadata"].get("name") == name:
            seen.add(event["type"])
        if {"ADDED", "DELETED"} <= seen:
            return
    words = sorted(seen) or _("nothing")
    raise CheckFailed(_("The watch did not tell that a pod was added and deleted; it told: {seen}.", seen=words))


async def _bookmarks(scratch: Scratch) -> None:
    """A streaming list ends with a bookmark; elsewhere one comes shortly before a watch's end if something has changed during it."""
    version = await _version(scratch)
    with contextlib.suppress(Rejected):  # from Kubernetes before 1.32
        if await _has_bookmark(scratch, ""):
            return
    await _note(scratch, "1")
    if not await _has_bookmark(scratch, version):
        raise CheckFailed(_("A watch of {seconds} s had no bookmark.", seconds=WATCH_SECONDS))


async def _has_bookmark(scratch: Scratch, version: str) -> bool:
    """Return whether a watch from that version has one; without a version it is a streaming list."""
    has_changed = not version
    async for event in _events(scratch, version):
        if event["type"] == "BOOKMARK":
            return True
        if not has_changed:
            await _note(scratch, "2")
            has_changed = True
    return False


async def _note(scratch: Scratch, text: str) -> RawObject:
    note = {"metadata": {"annotations": {"note": text}}}
    return await scratch.api.patch(PODS, scratch.name("pod-a"), note, namespace=scratch.namespace)


async def _version(scratch: Scratch) -> str:
    return str((await scratch.listed(PODS))["metadata"]["resourceVersion"])


async def _events(scratch: Scratch, version: str) -> AsyncIterator[RawObject]:
    stream = scratch.api.watch(
        PODS,
        resource_version=version,
        namespace=scratch.namespace,
        label_selector=scratch.selector,
        timeout_seconds=WATCH_SECONDS,
        initial_events=not version,
    )
    async with aclosing(_closable(stream)) as lines:
        async for line in lines:
            yield msgspec.json.decode(line, type=dict[str, Any])


async def _log(scratch: Scratch) -> None:
    """The pod has no node, so the API server refuses with 400 once it has found pod and right."""
    chunks = _closable(scratch.api.logs(scratch.name("pod-a"), namespace=scratch.namespace))
    with contextlib.suppress(Rejected):
        async with aclosing(chunks) as log:
            await anext(log, None)


def _closable(stream: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    return cast(AsyncGenerator[bytes, None], stream)


async def _eviction(scratch: Scratch) -> None:
    await scratch.api.evict(scratch.name("pod-b"), namespace=scratch.namespace)
    otherwise = _("The evicted pod was not deleted within {seconds:.0f} s.")
    await until(lambda: scratch.is_gone(PODS, "pod-b"), otherwise, seconds=20.0)


async def _secret(scratch: Scratch) -> None:
    await scratch.create(SECRETS, "secret", stringData={"key": "value"})
    if (await scratch.get(SECRETS, "secret")).get("data", {}).get("key") != "dmFsdWU=":
        raise CheckFailed(_("The Secret does not hold what was written."))


async def _service(scratch: Scratch) -> None:
    ports = [{"name": "http", "port": 8080}]
    made = await scratch.create(SERVICES, "service", spec={"selector": scratch.labels, "ports": ports})
    if not made["spec"].get("clusterIP"):
        raise CheckFailed(_("The Service got no address."))


async def _claim(scratch: Scratch) -> None:
    """Only as a dry run: a storage class may make a volume for a claim at once."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    await scratch.create(VOLUME_CLAIMS, "claim", dry_run=True, spec=spec)


async def _list_events(scratch: Scratch) -> None:
    await scratch.api.list_page(EVENTS, namespace=scratch.namespace, limit=1)


async def _garbage(scratch: Scratch) -> None:
    await scratch.delete(CONFIG_MAPS, "anchor")
    otherwise = _("What belonged to a deleted object was not removed within {seconds:.0f} s.")
    await until(lambda: scratch.is_gone(SECRETS, "secret"), otherwise, seconds=GARBAGE_SECONDS)


CHECKS: tuple[ApiCheck, ...] = (
    ApiCheck("access-review", _("Say which rights we have"), _access_review),
    ApiCheck(
        "objects",
        _("Create and read an object; refuse a second one"),
        _anchor,
        "create configmaps, get configmaps, delete configmaps",
    ),
    ApiCheck("dry-run", _("Dry run: check an object without storing it"), _dry_run, "create pods, get pods"),
    ApiCheck("pods", _("Create, change and page through pods"), _pods, "create pods, patch pods, list pods"),
    ApiCheck("metadata", _("List metadata alone"), _metadata_only, "list pods"),
    ApiCheck("watch", _("Watch pods"), _watch, "create pods, delete pods, list pods, watch pods"),
    ApiCheck("bookmarks", _("Bookmarks in a watch"), _bookmarks, "list pods, watch pods, patch pods"),
    ApiCheck("log", _("Read a pod’s log"), _log, "get pods/log"),
    ApiCheck("eviction", _("Evict a pod"), _eviction, "create pods/eviction, get pods"),
    ApiCheck("secrets", _("Create and read a Secret"), _secret, "create secrets, get secrets"),
    ApiCheck("services", _("Create a Service"), _service, "create services"),
    ApiCheck("claims", _("Dry run of a PersistentVolumeClaim"), _claim, "create persistentvolumeclaims"),
    ApiCheck("events", _("List events"), _list_events, "list events"),
    *WORKLOAD_CHECKS,
    ApiCheck(
        "garbage",
        _("Remove what belongs to a deleted object"),
        _garbage,
        "delete configmaps, get secrets",
        seconds=70.0,
    ),
)
