"""Has revisions of environments built, and keeps what the builder says of each. The leading controller does it, beside everything else.

The row is the request, and asking the builder again is harmless: so what a controller or a cluster was doing when it died goes on or begins
again. `Builder` is the seam to what builds: the embedded cluster, or a Job of a rootless builder (`jobbuilder`).
"""

import logging
from typing import Protocol

import msgspec

from grid.core.errors import ClusterUnavailable, GridError, NotAllowed, NotFound, Rejected
from grid.core.translation import gettext as _
from grid.database.periodic import PeriodicTask
from grid.database.trouble import TroubleLog
from grid.database.turns import PersonTurns
from grid.environments.jobbuilder import installed_builder
from grid.environments.revisions import BuildProgress, record_progress, record_waiting, to_build
from grid.executions.context import Context
from grid.kube.api import KubeApi
from grid.models import EnvironmentRevision

logger = logging.getLogger(__name__)

LOOK_SECONDS = 2.0  # while something is being built
IDLE_SECONDS = 5.0  # a new one is begun after these at most
BUILD_SECONDS = 1800.0
NO_BUILDER = _(
    "This installation builds no images: whoever runs it has to set GRID_BUILDER. "
    "Or build the image with your own tools, push it to your registry, and give its name."
)
_NOT_ANSWERING = _("The cluster does not answer now. The build continues, or begins again, as soon as it does.")
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
        return msgspec.convert(await self._api.ask_sandbox("POST", "builds", order), BuildProgress)


class RevisionBuilds:
    """Follows all builds, by default with the builder that is set, or else the embedded cluster."""

    def __init__(self, context: Context, troubles: TroubleLog, builder: Builder | None = None) -> None:
        self._context = context
        self._troubles = troubles
        self._builder = builder or installed_builder(context.api) or EmbeddedBuilder(context.api)
        self._turns = PersonTurns[str]()

    def periodic(self) -> PeriodicTask:
        return PeriodicTask("environment builds", IDLE_SECONDS, self.run_once)

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
            raise ClusterUnavailable(_NOT_ANSWERING)
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
            await context.due_work(record_waiting, revision.pk, _NOT_ANSWERING)
            return False
        await context.due_work(record_progress, revision.pk, progress, now=context.clock())
        if progress.state != "building":
            logger.info("environment=%s revision=%d %s", revision.environment_id, revision.number, progress.state)
        return True
