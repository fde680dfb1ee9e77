"""Has revisions of environments built, and keeps what the builder says of each. The leading controller does it, beside everything else.

The row is the request, and asking the builder again is harmless: so what a controller or a cluster was doing when it died goes on or begins
again. `Builder` is the seam to what builds: the embedded cluster, or on a real cluster a Job of a rootless builder for each revision, in a
namespace of its own. The Job's name is derived from what is built, so whoever asks after a controller died finds it.
"""

import logging
from typing import Protocol

import msgspec
from django.conf import settings

from grid.core.decoding import prepared
from grid.core.errors import ClusterUnavailable, Conflict, GridError, NotAllowed, NotFound, Rejected, rejection
from grid.core.labels import APP_INSTANCE, MANAGED_BY, MANAGER
from grid.core.requirementlines import BUILT_HERE
from grid.core.translation import gettext as _
from grid.database.periodic import PeriodicTask
from grid.database.trouble import TroubleLog
from grid.database.turns import PersonTurns
from grid.environments import buildjobs
from grid.environments.buildjobs import BuildSettings, RevisionOrder
from grid.environments.revisions import IMAGE_NAME, SILENT, BuildProgress, record_progress, record_silence, to_build
from grid.executions.apply import end_of_log, list_all
from grid.executions.context import Context
from grid.kube.api import KubeApi
from grid.kube.objects import Pod, RawObject
from grid.kube.resources import CONFIG_MAPS, JOBS, PODS
from grid.models import EnvironmentRevision

logger = logging.getLogger(__name__)

LOOK_SECONDS = 2.0  # while something is being built
IDLE_SECONDS = 5.0  # a new one is begun after these at most
BUILD_SECONDS = 1800.0
NO_BUILDER = _(
    "This installation builds no images: whoever runs it has to set GRID_BUILDER. "
    "Or build the image with your own tools, push it to your registry, and give its name."
)
_BUILT_ELSEWHERE = _(
    "It stands on an image of the embedded cluster, or is named after one, and no registry has those. "
    "Make it again on top of a revision whose image is in a registry."
)
_UNREADABLE = _("The cluster said something about this build that cannot be read; it may be of another release.")


class Builder(Protocol):
    """What builds images: asked first it begins, and later it says how it goes. It raises errors of `grid.core.errors`."""

    async def ask(self, revision: EnvironmentRevision) -> BuildProgress: ...


class EmbeddedBuilder:
    """The embedded cluster, which any other answers with NotFound."""

    def __init__(self, api: KubeApi) -> None:
        self._api = api

    async def ask(self, revision: EnvironmentRevision) -> BuildProgress:
        order = {
            "name": revision.image,
            "base": revision.base.image if revision.base else "",
            "requirements": revision.requirements.splitlines(),
            "seconds": BUILD_SECONDS,
        }
        return msgspec.convert(await self._api.ask_sandbox("POST", "builds", order), prepared(BuildProgress))


def build_settings() -> BuildSettings | None:
    """Return how this installation builds; None when no builder is set."""
    if settings.BUILDER not in buildjobs.BUILDERS or not settings.BUILD_REPOSITORY:
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


def order_of(revision: EnvironmentRevision) -> RevisionOrder:
    """Return what is to be built. Raise Rejected."""
    base = revision.base.image if revision.base else ""
    if base.startswith(BUILT_HERE) or revision.image.startswith(BUILT_HERE):
        raise rejection(_BUILT_ELSEWHERE, "base")
    if not IMAGE_NAME.fullmatch(base):
        raise rejection(_("Its base is no name of an image."), "base")
    return RevisionOrder(revision.image, base, tuple(revision.requirements.splitlines()))


class JobBuilder:
    """The `Builder` for clusters with a rootless builder."""

    def __init__(self, api: KubeApi, settings: BuildSettings) -> None:
        self._api, self._settings = api, settings
        self._with_files: set[str] = set()  # uids of Jobs whose ConfigMap is known to be there

    async def ask(self, revision: EnvironmentRevision) -> BuildProgress:
        order = order_of(revision)
        try:
            return await self._ask(order, revision)
        except (NotFound, NotAllowed) as error:
            logger.info("build=%s cannot be run reason=%s", order.job, error)
            sentence = _(
                "{title} cannot be run in the namespace {namespace}, which does not exist, or in "
                "which the controller has no right to: an admin of the cluster applies deploy/builds.yaml. The build begins then."
            ).format(title=self._settings.kind.title, namespace=self._settings.namespace)
            return BuildProgress(revision.build, "building", sentence)

    async def _ask(self, order: RevisionOrder, revision: EnvironmentRevision) -> BuildProgress:
        job = await self._job(order)
        uid = str(job["metadata"]["uid"])
        if uid not in self._with_files:
            await self._make_files(order, uid)
        selector = f"{APP_INSTANCE}={order.job},{MANAGED_BY}={MANAGER}"
        pods = await list_all(self._api, PODS, Pod, namespace=self._settings.namespace, label_selector=selector)
        pod = max(pods, key=lambda pod: str(pod.metadata.creation_timestamp or ""), default=None)
        log = (
            await end_of_log(self._api, pod, buildjobs.CONTAINER)
            if pod is not None and pod.status.phase != "Pending"
            else ""
        )
        log, before = log or revision.log, revision.words
        return buildjobs.progress_of(job, pod, log, order=order, settings=self._settings, before=before)

    async def _job(self, order: RevisionOrder) -> RawObject:
        namespace = self._settings.namespace
        try:
            job = await self._api.get(JOBS, order.job, namespace=namespace)
        except NotFound:
            manifest = buildjobs.job_manifest(order, self._settings)
            try:
                job = await self._api.create(JOBS, manifest.body, namespace=namespace)
                logger.info("build=%s begun builder=%s", order.job, self._settings.builder)
            except Conflict:
                job = await self._api.get(JOBS, order.job, namespace=namespace)
        if job["metadata"].get("labels", {}).get(MANAGED_BY) != MANAGER:
            sentence = _("A Job {job} of somebody else is in {namespace}. Delete it there, or make the revision again.")
            raise rejection(sentence.format(job=order.job, namespace=namespace), "name_taken")
        return job

    async def _make_files(self, order: RevisionOrder, uid: str) -> None:
        files = buildjobs.files_manifest(order, self._settings, job_uid=uid)
        try:
            await self._api.create(CONFIG_MAPS, files.body, namespace=self._settings.namespace)
        except Conflict:
            there = await self._api.get(CONFIG_MAPS, order.job, namespace=self._settings.namespace)
            if uid not in [owner["uid"] for owner in there["metadata"].get("ownerReferences", ())]:
                return  # an earlier Job's, which goes with it
        self._with_files.add(uid)


class RevisionBuilds:
    """Follows all builds, by default with the builder that is set, or else the embedded cluster."""

    def __init__(self, context: Context, troubles: TroubleLog, builder: Builder | None = None) -> None:
        self._context, self._troubles = context, troubles
        installed = build_settings()
        of_cluster = JobBuilder(context.api, installed) if installed else EmbeddedBuilder(context.api)
        self._builder: Builder = builder or of_cluster
        self._turns = PersonTurns[str]()

    def periodic(self) -> PeriodicTask:
        building = EnvironmentRevision.objects.filter(state=EnvironmentRevision.State.BUILDING)
        return PeriodicTask("environment builds", IDLE_SECONDS, self.run_once, work=lambda now: building)

    async def run_once(self) -> float | None:
        """Ask once about each build, and return when to ask again. Raise ClusterUnavailable when the builder did not answer of each."""
        answers = True
        revisions = await self._context.due_work(to_build)
        for _person, revision in self._turns.each((revision.made_by, revision) for revision in revisions):
            try:
                answers &= await self._follow(revision)
            except Exception as error:  # which must not keep those after it
                answers = False
                if not self._troubles.handles(error):
                    logger.exception("environment=%s revision=%d not built", revision.environment_id, revision.number)
        if not answers:
            raise ClusterUnavailable(SILENT)
        return LOOK_SECONDS if revisions else None

    async def _follow(self, revision: EnvironmentRevision) -> bool:
        context = self._context
        try:
            progress = await self._builder.ask(revision)
        except (NotFound, NotAllowed):
            progress = BuildProgress(revision.build, "failed", NO_BUILDER)
        except Rejected as error:
            progress = BuildProgress(revision.build, "failed", error.sentences)
        except msgspec.ValidationError:
            progress = BuildProgress(revision.build, "failed", _UNREADABLE)
        except (GridError, TimeoutError) as error:
            logger.info(
                "environment=%s revision=%d not asked reason=%s", revision.environment_id, revision.number, error
            )
            await context.due_work(record_silence, revision.pk)
            return False
        await context.due_work(record_progress, revision.pk, progress, now=context.clock())
        if progress.state != "building":
            logger.info("environment=%s revision=%d %s", revision.environment_id, revision.number, progress.state)
        return True
