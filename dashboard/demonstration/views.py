"""The demonstration page: the number of simulated pods, the rate of changes, and failures to cause.

The page exists only with GRID_DEMO and the embedded cluster; otherwise it is 404.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from dashboard.shell.access import admin_required
from grid.core.errors import Conflict, GridError, NotAllowed, NotFound
from grid.core.translation import gettext as _
from grid.core.wording import plural
from grid.kube.objects import RawObject
from grid.runtime import get_runtime

MOST_PODS, MOST_CHURN = 150_000, 1000  # the embedded cluster's limits
_PODS_STEP = 100


@dataclass(frozen=True, slots=True)
class Slider:
    name: str
    title: str
    meaning: str
    value: int
    most: int
    step: int

    @property
    def shown(self) -> str:
        return f"{self.value:,}"


@dataclass(frozen=True, slots=True)
class FailureButton:
    """A button that causes a failure. `seen` says where it shows, `choice` names a further field; some failures need pods."""

    name: str
    title: str
    meaning: str
    seen: str
    choice: str = ""
    needs_pods: bool = True


FAILURES: Sequence[FailureButton] = (
    FailureButton(
        "stock-out",
        _("A pool is out of stock"),
        _("Ten workers of a pool are replaced, and for two minutes nothing new gets a node there."),
        _("Infrastructure: these pods wait, and their pages say that no node has room and that none can be added."),
        "pool",
    ),
    FailureButton(
        "bad-image",
        _("A bad image"),
        _("Ten workers are replaced by ones with an image that is in no registry, for two minutes."),
        _("Infrastructure: these pods cannot pull their image; a pod's page says what to do."),
    ),
    FailureButton(
        "out-of-memory",
        _("Out of memory"),
        _("Ten workers use more memory than they may, are killed and start again."),
        _("Infrastructure: their restarts are counted; a pod's page says that its memory did not suffice."),
    ),
    FailureButton(
        "crash-loop",
        _("A crash loop"),
        _("Ten workers crash five times, each time with a longer wait before the next start."),
        _("Infrastructure: these pods wait to be started again; a pod's page names the exit code."),
    ),
    FailureButton(
        "node-lost",
        _("A node is lost"),
        _("One node falls silent. After 40 seconds its pods are replaced elsewhere, and it is replaced."),
        _("Infrastructure: the node is lost, its pods are not ready; then both are replaced."),
    ),
    FailureButton(
        "taint",
        _("A node in maintenance"),
        _("One node gets a taint that no pod tolerates; its pods move. After two minutes it is back."),
        _("Infrastructure: the node's page shows the taint, and its pods go."),
    ),
    FailureButton(
        "pause",
        _("The API server is stuck"),
        _("It answers nothing for the chosen time; connections stay open."),
        _("Every live page says how far behind it is, and catches up by itself."),
        "seconds",
        needs_pods=False,
    ),
    FailureButton(
        "restart",
        _("The API server restarts"),
        _("All connections end, none is accepted for the chosen time, and the watch history is lost."),
        _("Every live page says that the cluster cannot be reached, and then is right again without a reload."),
        "seconds",
        needs_pods=False,
    ),
    FailureButton(
        "history-dropped",
        _("The watch history is dropped"),
        _("All watches end and cannot be resumed, so every cache has to read everything again."),
        _("Every live page stays as it is; nothing is missing and nothing is shown twice."),
        needs_pods=False,
    ),
)


def demonstration_view(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the page shows of the embedded cluster's population, as its API reports it."""
    nodes, changes = plural(state["nodes"], "node", "nodes"), plural(state["changes"], "change", "changes")
    all_pods = plural(state["pods"], "pod", "pods")
    pods, churn = state["wanted"]["pods"], ceil(state["wanted"]["churn"])
    step = 1 if pods % _PODS_STEP else _PODS_STEP  # a browser would round other numbers, and submit those unseen
    nodes_words = _("Nodes are added above 30 pods for each node.")
    churn_words = _("Workers that come and go, jobs that end, failures.")
    return {
        "now": _("Now {nodes} and {pods}; {changes} since the start.", nodes=nodes, pods=all_pods, changes=changes),
        "is_empty": not state["pods"],
        "out_of_stock": ", ".join(state["outOfStock"]),
        "pools": state["pools"],
        "sliders": (
            Slider("pods", _("Pods"), nodes_words, pods, MOST_PODS, step),
            Slider("churn", _("Changes a second"), churn_words, churn, MOST_CHURN, 1),
        ),
        "failures": FAILURES,
    }


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
    page = "demonstration/demonstration.html"
    return await sync_to_async(render)(request, page, context, status=503 if problem else 200)


@require_POST
@admin_required
async def demonstration_size(request: HttpRequest) -> HttpResponse:
    _only_in_demonstrations()
    pods, churn = _number(request, "pods", MOST_PODS), _number(request, "churn", MOST_CHURN)
    if pods is None or churn is None:
        refusal = _("Choose between 0 and {pods:,} pods, and between 0 and {churn:,} changes a second.")
        messages.error(request, refusal.format(pods=MOST_PODS, churn=MOST_CHURN))
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
