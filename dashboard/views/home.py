"""The first page after login: where to go from here, by role."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from dashboard.access import role_of


def home(request: HttpRequest) -> HttpResponse:
    return render(request, "dashboard/home.html", {"role": role_of(request.user)})
