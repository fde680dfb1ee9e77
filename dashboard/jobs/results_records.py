"""Reads the results of runs from the repositories of their projects."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from django.conf import settings

from dashboard.jobs.viewmodels.results import (
    DIFFERENCE_BYTES,
    Results,
    ResultsComparison,
    RunResults,
    compared_results,
    results,
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
    with _repository(files.execution.project) as repository:
        return results(files.results, repository.files(files.results))


def compare_results(first_id: str, second_id: str) -> ResultsComparison | None:
    """Return how the results of two executions differ; None where neither has any. Raise ResultsUnreadable."""
    rows = RunFiles.objects.filter(pk__in=[first_id, second_id]).exclude(results="")
    kept = {row.pk: row for row in rows.select_related("execution__project")}
    if not kept:
        return None
    with _repository(next(iter(kept.values())).execution.project) as repository:
        commits = [kept[id].results if id in kept else "" for id in (first_id, second_id)]
        first, second = (RunResults(commit, repository.files(commit) if commit else ()) for commit in commits)
        return compared_results(first, second, partial(repository.difference, limit=DIFFERENCE_BYTES))


@contextmanager
def _repository(project: Project) -> Iterator[Repository]:
    """Yield the project's repository. Raise ResultsUnreadable where it has none, or cannot be read."""
    if not project.is_in_git or not settings.REPOSITORIES:  # results of remote ones are here too
        raise ResultsUnreadable(
            _("The project's files are no longer in Git. Choose Git again on its page to see results.")
        )
    repository = Repositories(settings.REPOSITORIES).of(project.pk)
    try:
        yield repository
    except (GridError, OSError) as error:
        logger.warning("results not read repository=%s reason=%s", repository.path.name, error)
        raise ResultsUnreadable(
            _("The results cannot be read now. Try again, or ask an operator to look at the repositories' volume.")
        ) from error
