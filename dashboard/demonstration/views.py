"""The demonstration page: the number of simulated pods, the rate of changes, and failures to cause.

The page exists only with GRID_DEMO and the embedded cluster; otherwise it is 404.
"""

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from dashboard.demonstration.viewmodel import FAILURES, MOST_CHURN, MOST_PODS, demonstration_view
from dashboard.shell.access import admin_required
from grid.core.errors import Conflict, GridError, NotAllowed, NotFound
from grid.core.translation import gettext as _
from grid.kube.objects import RawObject
from grid.runtime import get_runtime

_NOT_HERE = _("This page is for demonstrations on the embedded cluster.")
_SECONDS = (5, 15, 60)


@require_safe
@admin_required
async def demonstration(request: HttpRequest) -> HttpResponse:
    _only_in_demonstrations()
    view, problem = None, ""
    try:
        view = demonstration_view(await get_runtime().api.ask_sandbox("GET", "population"))
    except (NotFound, NotAllowed) as error:
        raise Http404(_NOT_HERE) from error
    except GridError as error:
        problem = str(error)
    context = {"x": view, "problem": problem, "seconds": _SECONDS}
    status = 503 if problem else 200
    return await sync_to_async(render)(request, "demonstration/demonstration.html", context, status=status)


@require_POST
@admin_required
async def demonstration_size(request: HttpRequest) -> HttpResponse:
    _only_in_demonstrations()
    pods, churn = _number(request, "pods", MOST_PODS), _number(request, "churn", MOST_CHURN)
    if pods is None or churn is None:
        refusal = _(
            "Choose between 0 and {most_pods:,} pods, and between 0 and {most_churn:,} changes a second.",
            most_pods=MOST_PODS,
            most_churn=MOST_CHURN,
        )
        messages.error(request, refusal)
        return redirect("demonstration")
    outcome = _("Changing to {pods:,} pods and {churn} changes a second.", pods=pods, churn=churn)
    return await _asked(request, "PATCH", "population", {"pods": pods, "churn": churn}, outcome)


@require_POST
@admin_required
async def demonstration_failure(request: HttpRequest) -> HttpResponse:
    _only_in_demonstrations()
    failure = next((known for known in FAILURES if known.name == request.POST.get("failure")), None)
    if failure is None:
        raise Http404(_("There is no such failure."))
    body: RawObject = {}
    if failure.choice == "pool":
        body["pool"] = request.POST.get("pool", "")
    elif failure.choice == "seconds":
        body["seconds"] = _number(request, "seconds", max(_SECONDS)) or min(_SECONDS)
    return await _asked(request, "POST", f"failures/{failure.name}", body, f"{failure.title}. {failure.seen}")


async def _asked(request: HttpRequest, method: str, path: str, body: RawObject, outcome: str) -> HttpResponse:
    """Send the request to the embedded cluster, add a message with its outcome, and redirect to the page."""
    try:
        await get_runtime().api.ask_sandbox("PATCH" if method == "PATCH" else "POST", path, body)
    except (NotFound, NotAllowed) as error:
        raise Http404(_NOT_HERE) from error
    except Conflict as error:
        messages.error(request, str(error))
    except GridError as error:
        messages.error(request, _("The embedded cluster did not take it: {error}", error=error))
    else:
        messages.success(request, outcome)
    return redirect("demonstration")


def _only_in_demonstrations() -> None:
    if not settings.DEMO:
        raise Http404(_NOT_HERE)


def _number(request: HttpRequest, name: str, most: int) -> int | None:
    """Return the posted number; None when it is not a whole number from 0 to `most`."""
    text = request.POST.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 and int(text) <= most else None
