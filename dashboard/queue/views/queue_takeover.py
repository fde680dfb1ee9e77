"""Taking over the queue for a time, and giving it back: a page that says what either means, and does it."""

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from dashboard.shell.access import may_operate
from grid.core.errors import Rejected
from grid.core.translation import gettext as _
from grid.core.wording import moment_words, plural
from grid.models import User
from grid.queue import takeover


@require_http_methods(["GET", "HEAD", "POST"])
def queue_takeover(request: HttpRequest) -> HttpResponse:
    if not may_operate(request.user):
        raise PermissionDenied(_("Only operators and admins can take over the queue."))
    problem, now = "", timezone.now()
    if request.method == "POST":
        try:
            messages.success(request, _decide(request))
        except Rejected as rejected:
            problem = rejected.sentences
        else:
            return redirect("queue")
    current = takeover.current_takeover(now)
    context = {
        "problem": problem,
        "takeover": takeover.takeover_sentence(current) if current is not None else "",
        "choices": [(minutes, _words(minutes)) for minutes in takeover.MINUTES],
        "minutes": request.POST.get("minutes", "60"),
        "reason": request.POST.get("reason", "")[: takeover.REASON_LONGEST],
        "longest": takeover.REASON_LONGEST,
    }
    return render(request, "queue/queue_takeover.html", context, status=422 if problem else 200)


def _decide(request: HttpRequest) -> str:
    """Do what the form asks and return what was done. Raise Rejected."""
    assert isinstance(request.user, User)
    now = timezone.now()
    if request.POST.get("do") == "back":
        takeover.give_back(by=request.user, now=now)
        return _("The queue goes by turn again.")
    typed = request.POST.get("minutes", "")
    minutes = int(typed) if typed in map(str, takeover.MINUTES) else 0
    taken = takeover.take_over(by=request.user, minutes=minutes, reason=request.POST.get("reason", ""), now=now)
    return _(
        "You decide what starts, until {until_at}. Put executions in front to let them start.",
        until_at=moment_words(taken.until_at),
    )


def _words(minutes: int) -> str:
    return plural(minutes // 60, "hour", "hours") if minutes >= 60 else plural(minutes, "minute", "minutes")
