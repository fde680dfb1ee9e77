"""Builds revisions on a real cluster: a Job of a rootless builder for each, in a namespace of its own, which is asked for until it ends.

The Job's name is derived from what is built, so whoever asks after a controller died finds it; nothing is remembered here that matters.
"""

import logging

from django.conf import settings

from grid.core.errors import Conflict, NotAllowed, NotFound, Problem, Rejected
from grid.core.labels import APP_INSTANCE, MANAGED_BY, MANAGER
from grid.core.regexes import Expression
from grid.core.requirementlines import BUILT_HERE
from grid.core.translation import gettext as _
from grid.environments.buildjobs import (
    BUILDERS,
    CONTAINER,
    BuildSettings,
    RevisionOrder,
    files_manifest,
    job_manifest,
    progress_of,
)
from grid.environments.revisions import BuildProgress
from grid.executions.apply import end_of_log, list_all
from grid.kube.api import KubeApi
from grid.kube.objects import Pod, RawObject
from grid.kube.resources import CONFIG_MAPS, JOBS, PODS
from grid.models import EnvironmentRevision

logger = logging.getLogger(__name__)

_IMAGE = Expression(r"[!-~]{1,255}")
_BUILT_ELSEWHERE = _(
    "It stands on an image of the embedded cluster, or is named after one, and no registry has those. "
    "Make it again on top of a revision whose image is in a registry."
)


def build_settings() -> BuildSettings | None:
    """Return how this installation builds; None when no builder is set."""
    if settings.BUILDER not in BUILDERS or not settings.BUILD_REPOSITORY:
        return None
    return BuildSettings(
        builder=settings.BUILDER,
        namespace=settings.BUILD_NAMESPACE,
        image=settings.BUILD_IMAGE,
        secret=settings.BUILD_SECRET,
        index=settings.PACKAGE_INDEX,
        cores=settings.BUILD_CORES,
        memory=settings.BUILD_MEMORY,
    )


def build_repository() -> str:
    """Return what the names of built images begin with, a slash at its end: the repository to push to, or the embedded cluster's."""
    return f"{settings.BUILD_REPOSITORY.rstrip('/')}/" if build_settings() else BUILT_HERE


def installed_builder(api: KubeApi) -> "JobBuilder | None":
    """Return the builder that is set; None when there is none, and the embedded cluster is asked."""
    settings = build_settings()
    return JobBuilder(api, settings) if settings else None


def order_of(revision: EnvironmentRevision) -> RevisionOrder:
    """Return what is to be built. Raise Rejected."""
    base = revision.base.image if revision.base else ""
    if base.startswith(BUILT_HERE) or revision.image.startswith(BUILT_HERE):
        raise Rejected([Problem("", _BUILT_ELSEWHERE, "base")])
    if not _IMAGE.fullmatch(base):
        raise Rejected([Problem("", _("Its base is no name of an image."), "base")])
    return RevisionOrder(revision.image, base, tuple(revision.requirements.splitlines()))


class JobBuilder:
    """The `Builder` of `revisionbuilds` for clusters with a rootless builder."""

    def __init__(self, api: KubeApi, settings: BuildSettings) -> None:
        self._api = api
        self._settings = settings
        self._with_files: set[str] = set()  # uids of Jobs whose ConfigMap is known to be there

    async def ask(self, revision: EnvironmentRevision) -> BuildProgress:
        order = order_of(revision)
        try:
            return await self._ask(order, revision)
        except (NotFound, NotAllowed) as error:
            logger.info("build=%s cannot be run reason=%s", order.job, error)
            return BuildProgress(
                revision.build,
                "building",
                _(
                    "{title} cannot be run in the namespace {namespace}, which does not exist, or in "
                    "which the controller has no right to: an admin of the cluster applies deploy/builds.yaml. The build begins then.",
                    title=self._settings.kind.title,
                    namespace=self._settings.namespace,
                ),
            )

    async def _ask(self, order: RevisionOrder, revision: EnvironmentRevision) -> BuildProgress:
        job = await self._job(order)
        uid = str(job["metadata"]["uid"])
        if uid not in self._with_files:
            await self._make_files(order, uid)
        pods = await list_all(
            self._api,
            PODS,
            Pod,
            namespace=self._settings.namespace,
            label_selector=f"{APP_INSTANCE}={order.job},{MANAGED_BY}={MANAGER}",
        )
        pod = max(pods, key=lambda pod: str(pod.metadata.creation_timestamp or ""), default=None)
        log = await end_of_log(self._api, pod, CONTAINER) if pod is not None and pod.status.phase != "Pending" else ""
        before = revision.message
        return progress_of(job, pod, log or revision.log, order=order, settings=self._settings, before=before)

    async def _job(self, order: RevisionOrder) -> RawObject:
        namespace = self._settings.namespace
        try:
            job = await self._api.get(JOBS, order.job, namespace=namespace)
        except NotFound:
            manifest = job_manifest(order, self._settings)
            try:
                job = await self._api.create(JOBS, manifest.body, namespace=namespace)
                logger.info("build=%s begun builder=%s", order.job, self._settings.builder)
            except Conflict:
                job = await self._api.get(JOBS, order.job, namespace=namespace)
        if job["metadata"].get("labels", {}).get(MANAGED_BY) != MANAGER:
            sentence = _(
                "A Job {job} of somebody else is in {namespace}. Delete it there, or make the revision again.",
                job=order.job,
                namespace=namespace,
            )
            raise Rejected([Problem("", sentence, "name_taken")])
        return job

    async def _make_files(self, order: RevisionOrder, uid: str) -> None:
        files = files_manifest(order, self._settings, job_uid=uid)
        try:
            await self._api.create(CONFIG_MAPS, files.body, namespace=self._settings.namespace)
        except Conflict:
            there = await self._api.get(CONFIG_MAPS, order.job, namespace=self._settings.namespace)
            if uid not in [owner["uid"] for owner in there["metadata"].get("ownerReferences", ())]:
                return  # an earlier Job's, which goes with it
        self._with_files.add(uid)
