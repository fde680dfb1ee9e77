"""The page for server errors; it says so when the database is full, busy or unavailable."""

import sys

from django.http import HttpRequest, HttpResponse, HttpResponseServerError
from django.template.loader import render_to_string

from grid.database.trouble import trouble_of
from grid.observability.logcontext import current_request


def failed(request: HttpRequest) -> HttpResponse:
    """Return the error page. This is Django's `handler500`, called while the error is handled, wherever it was raised."""
    trouble = trouble_of(sys.exc_info()[1])
    context = {"trouble": trouble, "request_id": current_request()}
    if trouble is None:
        return HttpResponseServerError(render_to_string("500.html", context))
    answer = HttpResponse(render_to_string("503.html", context), status=503)
    answer["Retry-After"] = "30"  # seconds
    if request.headers.get("HX-Request") and not request.headers.get("HX-Target", "").endswith("#main"):
        answer["HX-Reswap"] = "none"  # a part of a page that polls stays as it was
    return answer
