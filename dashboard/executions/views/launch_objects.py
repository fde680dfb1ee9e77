"""What a launch would create, as YAML: the very objects, with the values of Secrets hidden."""

from asgiref.sync import sync_to_async
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_POST

from dashboard.executions.launch_facts import drafted, pool_states
from dashboard.executions.viewmodels.manifest import as_yaml
from dashboard.executions.views.launch import posted_form
from grid.diagnosis.launchfit import Pools
from grid.executions.preview import Preview
from grid.executions.storage import Storage
from grid.kube.redaction import HIDDEN
from grid.runtime import get_runtime


@require_POST
async def launch_objects(request: HttpRequest) -> HttpResponse:
    """Show the objects of the posted form, or what is missing in it."""
    answer: HttpResponse = await sync_to_async(_objects)(request, await pool_states(get_runtime()))
    return answer


def _objects(request: HttpRequest, pools: Pools | None) -> HttpResponse:
    form = posted_form(request, pools)
    if not form.is_valid():
        return render(request, "executions/launch_objects.html", {"text": ""}, status=422)
    storage = Storage(access_mode=settings.VOLUME_ACCESS_MODE, storage_class=settings.VOLUME_STORAGE_CLASS)
    unit = drafted(form, now=timezone.now())
    made = Preview.of(unit).objects(namespace=settings.GRID_NAMESPACE, storage=storage, token=HIDDEN)
    context = {"text": "---\n".join(as_yaml(one.body) for one in made), "count": len(made)}
    return render(request, "executions/launch_objects.html", context)
