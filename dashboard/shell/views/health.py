"""Health probes of the web process. Readiness decides whether traffic is sent here, so it checks only what no page works without: a page
from stale caches says that it is stale and why, which is better than no page. `/freshz` tells whether the caches are fresh."""

import logging
from collections.abc import Sequence

from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from grid.core.translation import gettext as _
from grid.database import write_probe as writing
from grid.models import Execution
from grid.runtime import get_runtime

logger = logging.getLogger(__name__)


@login_not_required
@require_safe
def alive(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"status": "ok"})


@login_not_required
@require_safe
def ready(request: HttpRequest) -> JsonResponse:
    """Return 200 when the database answers and can be written and no disk is full; otherwise 503 with the reason."""
    try:
        Execution.objects.exists()
        problems = writing.problems()
    except DatabaseError as error:
        name = type(error).__name__
        problems = [_("The database does not answer as it should; has it been migrated? ({name})", name=name)]
    if problems:
        # The kubelet's event has only the status code, so the reason goes to the log.
        logger.error("not ready: %s", " ".join(problems))
    return _answer("not ready", problems)


@login_not_required
@require_safe
def fresh(request: HttpRequest) -> JsonResponse:
    """Return 200 when every watch cache is filled and follows the cluster; otherwise 503, naming those that do not. Only the pages, which
    need a login, show the cluster's own error: it names hosts and accounts."""
    problems = []
    for name, freshness in get_runtime().caches().items():
        if not freshness.synced:
            problems.append(_("The cache {name} has not been filled yet.", name=name))
        elif freshness.error:
            behind = freshness.behind_seconds
            problems.append(_("The cache {name} is {behind:.0f} s behind the cluster.", name=name, behind=behind))
    return _answer("not fresh", problems)


def _answer(otherwise: str, problems: Sequence[str]) -> JsonResponse:
    status = 503 if problems else 200
    return JsonResponse({"status": otherwise if problems else "ok", "problems": problems}, status=status)
