"""What the form shows before a launch: the cluster's confirmation, and the very objects as YAML, with the values of Secrets hidden."""

from asgiref.sync import sync_to_async
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_POST

from dashboard.executions.launch_facts import check_of, cluster_known, drafted, pool_states
from dashboard.executions.viewmodels.fit_card import ClusterKnown
from dashboard.executions.viewmodels.manifest import as_yaml
from dashboard.executions.views.launch import posted_form
from grid.diagnosis.launchfit import Pools
from grid.executions.preview import Preview
from grid.executions.storage import Storage
from grid.kube.redaction import HIDDEN
from grid.runtime import get_runtime


@require_POST
async def launch_check(request: HttpRequest) -> HttpResponse:
    """Ask for a dry run of the posted form, unless it was asked for a moment ago, and return what is known as a fragment."""
    answer: HttpResponse = await sync_to_async(_check)(request, await cluster_known(get_runtime()))
    return answer


@require_POST
async def launch_objects(request: HttpRequest) -> HttpResponse:
    """Show the objects of the posted form, or what is missing in it."""
    answer: HttpResponse = await sync_to_async(_objects)(request, await pool_states(get_runtime()))
    return answer


def _check(request: HttpRequest, known: ClusterKnown) -> HttpResponse:
    check = check_of(posted_form(request, known.pools), known, is_awaited="awaited" in request.POST)
    return render(request, "executions/fragments/fit_check.html", {"check": check})


def _objects(request: HttpRequest, pools: Pools | None) -> HttpResponse:
    form = posted_form(request, pools)
    if not form.is_valid():
        return render(request, "executions/launch_objects.html", {"text": ""}, status=422)
    storage = Storage(access_mode=settings.VOLUME_ACCESS_MODE, storage_class=settings.VOLUME_STORAGE_CLASS)
    preview = Preview.of(drafted(form, now=timezone.now()))
    objects = preview.objects(namespace=settings.GRID_NAMESPACE, storage=storage, token=HIDDEN)
    context = {"text": "---\n".join(as_yaml(manifest.body) for manifest in objects), "count": len(objects)}
    return render(request, "executions/launch_objects.html", context)
