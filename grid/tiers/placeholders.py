"""Keeps placeholder pods in the warm-up hours of tiers and of rush plans, so that the autoscaler has nodes ready.

A placeholder reserves what an execution of its tier would, and has a negative priority: the scheduler ends it as soon as a pod of an
execution needs its room, and the next one, which then waits, lets the autoscaler start another node. It has no owner, price or slots.
One of a rush plan first runs `true` in the plan's image, so that its node has that; it keeps its room even where that fails.

Its name is a hash of all that it is, so two controllers make one of it, and what is not wanted any more is known by its name. A deadline
ends it even when no controller lives to do so.
"""

import hashlib
import logging
from datetime import datetime, time
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
from django.conf import settings

from grid.configuration import WARM_PLACES, value_of
from grid.core.errors import ClusterUnavailable, Conflict, GridError, NotAllowed, NotFound
from grid.core.labels import (
    APP_COMPONENT,
    APP_NAME,
    KEYS,
    MANAGER,
    PLACEHOLDER,
    PLACEHOLDER_CLASS,
    RUSH_PLAN,
    SAFE_TO_EVICT,
    WARM_UNTIL,
)
from grid.core.translation import gettext as _
from grid.database.periodic import PeriodicTask
from grid.diagnosis.requests import has_ended
from grid.executions.apply import list_all
from grid.executions.context import Context
from grid.executions.manifests import CONFINED, bare_placement, requests_and_limits
from grid.executions.spec import tier_spec
from grid.kube.objects import Pod, RawObject
from grid.kube.resources import PODS, PRIORITY_CLASSES
from grid.models import HardwareTier
from grid.tiers.rushplans import warm_plans
from grid.tiers.warmhours import WantedPlaceholder, WarmHours, WarmTier, wanted

logger = logging.getLogger(__name__)

PERIOD_SECONDS = 20.0
SELECTOR = f"{APP_NAME}={MANAGER},{APP_COMPONENT}={PLACEHOLDER}"
# The lowest that the cluster autoscaler starts nodes for: below its cutoff, -10, it takes pods for expendable.
PRIORITY = -10
_GRACE_SECONDS = 600  # after the hours, until a placeholder ends by itself
CLASS: RawObject = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": PLACEHOLDER_CLASS},
    "value": PRIORITY,
    "preemptionPolicy": "Never",
    "description": _("Placeholders of Compute Grid, which keep nodes ready and give way to any execution."),
}


def warm_hours(tier: HardwareTier) -> WarmHours | None:
    """Return the tier's warm-up hours; None when it has none, or when they cannot be read."""
    if not tier.warm_places or tier.is_archived:
        return None
    try:
        begins, ends = (time.fromisoformat(text) for text in (tier.warm_from, tier.warm_until))
        return WarmHours(frozenset(tier.warm_days), begins, ends, ZoneInfo(tier.warm_zone or "UTC"))
    except (ValueError, LookupError, OSError) as error:  # such as a time zone that this machine does not know
        logger.warning("warm-up hours of a tier cannot be read tier=%s reason=%s", tier.pk, error)
        return None


def wanted_now(data_plane: str, now: datetime) -> list[WantedPlaceholder]:
    """Return the placeholders wanted now in a data plane, by the tiers and the central configuration; synchronously."""
    most = value_of(WARM_PLACES)
    if not most:
        return []
    tiers = HardwareTier.objects.filter(data_plane=data_plane, is_archived=False, warm_places__gt=0)
    read = ((tier, warm_hours(tier)) for tier in tiers)
    warm = [WarmTier(tier_spec(tier), tier.warm_places or 0, hours) for tier, hours in read if hours is not None]
    return wanted([*warm, *warm_plans(data_plane, now)], most, now)


def manifest(placeholder: WantedPlaceholder, *, image: str, now: datetime) -> RawObject:
    warm, tier = placeholder.warm, placeholder.warm.tier
    resources = requests_and_limits(tier)
    spec: dict[str, Any] = {
        "containers": [{"name": PLACEHOLDER, "image": image, "resources": resources, "securityContext": CONFINED}],
        "priorityClassName": PLACEHOLDER_CLASS,
        "terminationGracePeriodSeconds": 0,
        **bare_placement(tier),
    }
    if sidecar_requests := warm.sidecar_requests:
        amounts = {name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in sidecar_requests.items()}
        sidecars = {"name": "beside", "image": image, "resources": {"requests": amounts, "limits": amounts}}
        spec["containers"].append(sidecars | {"securityContext": CONFINED})
    if warm.image:
        puller = {"name": "image", "image": warm.image, "command": ["true"], "securityContext": CONFINED}
        spec["initContainers"] = [puller | {"resources": resources}]
    if warm.pull_secret:
        spec["imagePullSecrets"] = [{"name": warm.pull_secret}]
    labels = {**tier.extra_labels, KEYS.tier: tier.id, APP_NAME: MANAGER, APP_COMPONENT: PLACEHOLDER}
    annotations = {**tier.extra_annotations, WARM_UNTIL: warm.hours.until_words(now), SAFE_TO_EVICT: "true"}
    if warm.plan:
        annotations[RUSH_PLAN] = warm.plan
    identity = msgspec.json.encode([placeholder.number, spec, labels, annotations], order="deterministic")
    name = f"warm-{tier.id}-{hashlib.sha256(identity).hexdigest()[:10]}"
    deadline = int((placeholder.until - now).total_seconds()) + _GRACE_SECONDS
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels, "annotations": annotations},
        "spec": {**spec, "activeDeadlineSeconds": deadline},
    }


class PlaceholderKeeper:
    """Part of one term of leadership."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def periodic(self) -> PeriodicTask:
        return PeriodicTask("placeholders", PERIOD_SECONDS, self.run_once)

    async def run_once(self) -> None:
        """Create the placeholders that are missing, and delete the others. Raise the API server's errors: a refusal once the others
        have been tried; the rest of its tier or plan, maybe a thousand, is not tried in vain."""
        context, now = self._context, self._context.clock()
        missing: dict[str, tuple[tuple[str, str], RawObject]] = {}
        for placeholder in await context.due_work(wanted_now, context.target.data_plane, now):
            body = manifest(placeholder, image=settings.PLACEHOLDER_IMAGE, now=now)
            missing[body["metadata"]["name"]] = (placeholder.warm.tier.id, placeholder.warm.plan), body
        for pod in await list_all(context.api, PODS, Pod, namespace=context.namespace, label_selector=SELECTOR):
            if missing.pop(pod.metadata.name, None) is None or has_ended(pod):
                await self._delete(pod)
        refused: dict[tuple[str, str], GridError] = {}
        for key, body in missing.values():
            if key not in refused:
                try:
                    await self._create(body)
                except ClusterUnavailable:
                    raise
                except GridError as error:
                    refused[key] = error
        for first in refused.values():
            raise first

    async def _delete(self, pod: Pod) -> None:
        meta = pod.metadata
        try:
            await self._context.api.delete(PODS, meta.name, namespace=meta.namespace, grace_seconds=0, uid=meta.uid)
            logger.info("placeholder deleted name=%s", meta.name)
        except (NotFound, Conflict):
            logger.debug("placeholder was deleted by somebody else name=%s", meta.name)

    async def _create(self, body: RawObject) -> None:
        name, api, namespace = body["metadata"]["name"], self._context.api, self._context.namespace
        try:
            try:
                await api.create(PODS, body, namespace=namespace)
            except NotAllowed as error:
                if "PriorityClass" not in str(error):
                    raise
                await self._create_class()
                await api.create(PODS, body, namespace=namespace)
            logger.info("placeholder created name=%s", name)
        except Conflict:
            logger.debug("placeholder exists already name=%s", name)

    async def _create_class(self) -> None:
        """Create the PriorityClass where we may, which is on the embedded cluster."""
        try:
            await self._context.api.create(PRIORITY_CLASSES, CLASS)
        except Conflict:
            logger.debug("the PriorityClass was created by somebody else")
        except NotAllowed as error:
            sentence = _("There is no PriorityClass {name}: apply deploy/access.yaml again.", name=PLACEHOLDER_CLASS)
            raise NotAllowed(sentence) from error
