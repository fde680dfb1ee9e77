"""The page for what went wrong on our side: of a database that is full, busy or away it says so."""

import sys

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.views.defaults import server_error

from grid.databasetrouble import trouble_of

_RETRY_SECONDS = 30


def failed(request: HttpRequest) -> HttpResponse:
    """Django's `handler500`: called where the error is handled, wherever below the outermost middleware it was raised."""
    trouble = trouble_of(sys.exc_info()[1])
    if trouble is None:
        return server_error(request)
    answer = HttpResponse(render_to_string("503.html", {"trouble": trouble}), status=503)
    answer["Retry-After"] = str(_RETRY_SECONDS)
    if request.headers.get("HX-Request") and not request.headers.get("HX-Target", "").endswith("#main"):
        answer["HX-Reswap"] = "none"  # a page's part that is asked for again and again stays as it was
    return answer
