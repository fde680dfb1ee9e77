"""Reads the results of runs from the repositories of their projects."""

import logging

from django.conf import settings

from dashboard.jobs.viewmodels.results import (
    DIFFERENCE_BYTES,
    Results,
    ResultsComparison,
    RunResults,
    compared_results,
    results,
    to_compare,
)
from grid.core.errors import GridError
from grid.core.translation import gettext as _
from grid.files.repositories import Repositories, Repository
from grid.models import Project, RunFiles

logger = logging.getLogger(__name__)


class ResultsUnreadable(Exception):
    """They are not there, or cannot be read now; the message is a sentence for the person."""


def read_results(execution_id: str) -> Results | None:
    """Return the results of an execution; None where it has none. Raise ResultsUnreadable."""
    files = RunFiles.objects.filter(pk=execution_id).exclude(results="").select_related("execution__project").first()
    if files is None:
        return None
    found = _read(_repository(files.execution.project), files)
    return results(found.commit, found.entries)


def compare_results(one_id: str, other_id: str) -> ResultsComparison | None:
    """Return how the results of two executions differ; None where neither has any. Raise ResultsUnreadable."""
    rows = RunFiles.objects.filter(pk__in=[one_id, other_id]).exclude(results="").select_related("execution__project")
    kept = {row.pk: row for row in rows}
    if not kept:
        return None
    repository = _repository(next(iter(kept.values())).execution.project)
    one, other = (_read(repository, kept[id]) if id in kept else RunResults("", ()) for id in (one_id, other_id))
    try:
        differences = {
            mine.shown: repository.difference(mine, theirs, DIFFERENCE_BYTES) for mine, theirs in to_compare(one, other)
        }
    except (GridError, OSError) as error:
        raise _unreadable(repository, error) from error
    return compared_results(one, other, differences)


def _repository(project: Project) -> Repository:
    if not project.is_in_git or not settings.REPOSITORIES:  # results of remote ones are here too
        raise ResultsUnreadable(
            _("The project's files are no longer in Git. Choose Git again on its page to see results.")
        )
    return Repositories(settings.REPOSITORIES).of(project.pk)


def _read(repository: Repository, files: RunFiles) -> RunResults:
    try:
        return RunResults(files.results, repository.files(files.results))
    except (GridError, OSError) as error:
        raise _unreadable(repository, error) from error


def _unreadable(repository: Repository, error: Exception) -> ResultsUnreadable:
    logger.warning("results not read repository=%s reason=%s", repository.path.name, error)
    return ResultsUnreadable(
        _("The results cannot be read now. Try again, or ask an operator to look at the repositories' volume.")
    )
