"""Probes for whatever runs the web process."""

from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError
from django.http import HttpRequest, JsonResponse

from grid.models import Execution
from grid.runtime import get_runtime


@login_not_required
def alive(request: HttpRequest) -> JsonResponse:
    """The process answers."""
    return JsonResponse({"status": "ok"})


@login_not_required
def ready(request: HttpRequest) -> JsonResponse:
    """The database answers and the watch caches are filled and fresh; otherwise 503 with the reason."""
    problems = []
    try:
        Execution.objects.exists()
    except DatabaseError as error:
        problems.append(f"The database does not answer as it should; has it been migrated? ({type(error).__name__})")
    freshness = get_runtime().freshness()
    if not freshness.synced or freshness.error:
        problems.append(freshness.error or "The first lists from the cluster are not complete yet.")
    return JsonResponse(
        {"status": "not ready" if problems else "ok", "problems": problems}, status=503 if problems else 200
    )
