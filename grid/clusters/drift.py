"""Keeps a cluster's objects as its spec says: deleted objects are created again, and a changed size is applied.

They are read only when this controller sees the cluster first, when head or workers are missing, and when the audit, one list per kind for
all clusters, finds drift; the one that sets the number of workers also when the spec or the slots allow another number.
"""

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import msgspec

from grid.clusters import manifests, objects, status
from grid.clusters.frameworks.base import cluster_of
from grid.core.errors import NotAllowed, Rejected
from grid.core.labels import MANAGED_BY, MANAGER
from grid.core.translation import gettext as _
from grid.executions import apply, ledger
from grid.executions.context import Context
from grid.executions.ledger import EventRecord, LedgerRecord
from grid.executions.manifests import NO_SECRETS, Manifest, anchor
from grid.executions.spec import ExecutionSpec
from grid.executions.storage import stored_secrets_name
from grid.kube.objects import RawObject
from grid.kube.resources import AUTOSCALERS, DEPLOYMENTS, DISRUPTION_BUDGETS, NETWORK_POLICIES, SERVICES, Resource
from grid.secrets.storedsecrets import SecretMissing

logger = logging.getLogger(__name__)

_KINDS = (DEPLOYMENTS, SERVICES, AUTOSCALERS, NETWORK_POLICIES, DISRUPTION_BUDGETS)
SELECTOR = f"{MANAGED_BY}={MANAGER}"


class _Sized(msgspec.Struct, frozen=True):
    replicas: int | None = None


class _Named(msgspec.Struct, frozen=True):
    name: str


class _Audited(msgspec.Struct):
    """All that the audit reads of an object, because it reads those of all clusters each minute; only Deployments have a number."""

    metadata: _Named
    spec: _Sized = _Sized()


@dataclass(frozen=True, slots=True)
class _Kept:
    size: tuple[int, int]  # the minimum and maximum last applied to the cluster
    expected: Mapping[tuple[Resource, str], int | None]  # the replicas that each object must have, None for any


class DriftRepair:
    """Repairs drift during one term of leadership."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._kept: dict[str, _Kept] = {}

    async def create(self, row: LedgerRecord, spec: ExecutionSpec) -> str:
        """Create the missing objects, and return the head's address. What need not know each other is asked for at once, as of a run:
        the anchor and the claims; what pods refer to, and rules for them; what makes pods; the autoscaler. Raise NotYet, NameTaken, or
        the API server's error."""
        context, secrets = self._context, await self._context.secrets_of(spec)
        create = partial(apply.create_at_once, context.api, execution_id=spec.id)
        claims = [manifest for manifest in self._first(spec, "") if not manifest.owned]
        owner, *_claims = await create([anchor(spec, namespace=context.namespace), *claims])
        uid = str(owner["metadata"]["uid"])
        *rules, head = (manifest for manifest in self._first(spec, uid, secrets) if manifest.owned)
        made = dict(zip((manifest.resource for manifest in rules), await create(rules), strict=True))
        address = objects.address_of(made[SERVICES])
        workers, *autoscaler = self._workers(spec, uid, address)
        await create([head, workers])
        await create(autoscaler)
        self._kept[row.id] = self._goal(spec)
        return address

    async def keep(self, row: LedgerRecord, spec: ExecutionSpec, *, invalidated: bool) -> str:
        """Repair the objects and return the head's address, which is a new one if the old one could not be kept."""
        address = status.read(row.status).head_address
        kept = self._kept.get(row.id)
        if invalidated or kept is None:
            address = await self._keep_all(row, spec, address)
        elif kept.size != _size(spec) or not self._autoscaler_is_right(row, spec):
            # The last of the workers' objects sets their number: the autoscaler, or else the Deployment.
            await self._keep_one(row, self._workers(spec, await self._anchor(spec), address)[-1], spec)
        else:
            return address
        self._kept[row.id] = self._goal(spec)
        return address

    async def audit(self) -> set[str]:
        """Return the clusters of which an object is missing, or whose replica count differs from ours while no autoscaler owns it."""
        actual: dict[tuple[Resource, str], int | None] = {}
        for resource in _KINDS if self._kept else ():
            listed = await apply.list_all(
                self._context.api,
                resource,
                _Audited,
                namespace=self._context.namespace,
                label_selector=SELECTOR,
                metadata_only=resource != DEPLOYMENTS,
            )
            actual |= {(resource, item.metadata.name): item.spec.replicas for item in listed}
        wrong = {
            id
            for id, kept in self._kept.items()
            for key, replicas in kept.expected.items()
            if key not in actual or (replicas is not None and actual[key] != replicas)
        }
        for id in wrong:
            del self._kept[id]
        return wrong

    def forget(self, execution_id: str) -> None:
        self._kept.pop(execution_id, None)

    def _first(self, spec: ExecutionSpec, uid: str, secrets: Mapping[str, str] = NO_SECRETS) -> list[Manifest]:
        namespace, storage = self._context.namespace, self._context.target.storage
        return manifests.first(spec, namespace=namespace, anchor_uid=uid, storage=storage, secrets=secrets)[1:]

    def _workers(self, spec: ExecutionSpec, uid: str, address: str) -> list[Manifest]:
        return manifests.workers(spec, namespace=self._context.namespace, anchor_uid=uid, head_address=address)

    def _goal(self, spec: ExecutionSpec) -> _Kept:
        wanted = [*self._first(spec, ""), *self._workers(spec, "", "")]
        expected = {(item.resource, item.name): _replicas(item, spec) for item in wanted if item.resource in _KINDS}
        return _Kept(_size(spec), expected)

    def _autoscaler_is_right(self, row: LedgerRecord, spec: ExecutionSpec) -> bool:
        """Return True when the cached autoscaler has the right size, or the cluster has none."""
        known = [autoscaler.spec for autoscaler in self._context.autoscalers.by("execution", row.id)]
        is_right = any((bounds.min_replicas, bounds.max_replicas) == _size(spec) for bounds in known)
        return is_right or not manifests.is_autoscaled(spec)

    async def _anchor(self, spec: ExecutionSpec) -> str:
        api, namespace = self._context.api, self._context.namespace
        known = await objects.find(api, anchor(spec, namespace=namespace))
        return str(known["metadata"]["uid"]) if known else await apply.create_anchor(api, spec, namespace=namespace)

    async def _keep_all(self, row: LedgerRecord, spec: ExecutionSpec, known: str) -> str:
        uid = await self._anchor(spec)
        (service,) = [manifest for manifest in self._first(spec, uid) if manifest.resource == SERVICES]
        address = objects.address_of(await self._keep_service(row, service, known))
        secrets: Mapping[str, str] | None = None
        with suppress(SecretMissing):  # one was deleted since, so that only the object in the cluster has them
            secrets = await self._context.secrets_of(spec)
        for manifest in [*self._first(spec, uid, secrets or NO_SECRETS), *self._workers(spec, uid, address)]:
            is_empty = secrets is None and manifest.name == stored_secrets_name(spec)
            if manifest.resource != SERVICES and not is_empty:
                await self._keep_one(row, manifest, spec)
        if address != known:
            await self._tell_workers(row, spec, uid, address)
        return address

    async def _tell_workers(self, row: LedgerRecord, spec: ExecutionSpec, uid: str, address: str) -> None:
        """Write the head's new address into the workers' template, which restarts them, and record it in the history."""
        deployment = self._workers(spec, uid, address)[0]
        await objects.patch(self._context.api, deployment, {"template": deployment.body["spec"]["template"]})
        message = _(
            "The head is reached at a new address, {address}, because its Service had been deleted. The workers are "
            "started again. A workspace or job that was attached knows the old one only: launch it again."
        ).format(address=address)
        await self._note(row, f"{address}/moved", f"Service/{manifests.head_name(row.id)}", "moved", message)

    async def _keep_service(self, row: LedgerRecord, manifest: Manifest, address: str) -> RawObject:
        """Return the Service. Workers and clients know the head by its address, so one that is created again asks for the same."""
        service = await objects.find(self._context.api, manifest)
        if service is not None:
            return service
        if address:
            spec = {**manifest.body["spec"], "clusterIP": address}
            try:
                return await self._make_again(row, replace(manifest, body={**manifest.body, "spec": spec}))
            except Rejected as error:
                logger.warning("address of the head cannot be had again execution=%s reason=%s", row.id, error)
        return await self._make_again(row, manifest)

    async def _keep_one(self, row: LedgerRecord, manifest: Manifest, spec: ExecutionSpec) -> None:
        actual = await objects.find(self._context.api, manifest)
        if actual is None:
            await self._make_again(row, manifest)
            return
        fields: Sequence[str] = ()
        if manifest.resource == AUTOSCALERS:
            fields = ("minReplicas", "maxReplicas")
        elif manifest.resource == DEPLOYMENTS and _replicas(manifest, spec) is not None:
            fields = ("replicas",)
        wanted = manifest.body.get("spec", {})  # a Secret has none
        changes = {name: wanted[name] for name in fields if actual["spec"].get(name) != wanted[name]}
        if changes:
            await objects.patch(self._context.api, manifest, changes)
            logger.info("changed execution=%s kind=%s %s", row.id, manifest.resource.kind, changes)

    async def _make_again(self, row: LedgerRecord, manifest: Manifest) -> RawObject:
        kind, name = manifest.resource.kind, manifest.name
        try:
            made = await apply.get_or_create(self._context.api, manifest, row.id)
        except NotAllowed as error:
            message = _("{kind} {name} had been deleted, and the cluster does not allow creating it again: {error}")
            message = message.format(kind=kind, name=name, error=error)
            await self._note(row, f"{name}/{kind}/refused", f"{kind}/{name}", "not_made_again", message)
            raise
        message = _("{kind} {name} had been deleted; it was created again.", kind=kind, name=name)
        await self._note(row, f"{made['metadata']['uid']}/made_again", f"{kind}/{name}", "made_again", message)
        return made

    async def _note(self, row: LedgerRecord, uid: str, about: str, reason: str, message: str) -> None:
        line = EventRecord(uid[-64:], self._context.clock(), about, "Warning", reason, message, 1)
        await self._context.database(ledger.note_events, row.id, [line])


def _size(spec: ExecutionSpec) -> tuple[int, int]:
    cluster = cluster_of(spec)
    return cluster.workers_minimum, cluster.workers_maximum


def _replicas(manifest: Manifest, spec: ExecutionSpec) -> int | None:
    """Return the replicas that a Deployment must have; None when its autoscaler owns them, and for other kinds."""
    is_autoscaled = manifest.name == manifests.worker_name(spec.id) and manifests.is_autoscaled(spec)
    return None if is_autoscaled else manifest.body["spec"].get("replicas")
