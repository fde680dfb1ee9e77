"""What shows no data: the texts of our scripts, the help, and the icon for what asks for it at its usual address, as browsers that do not
draw SVG and pages that name none do.
"""

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.templatetags.static import static
from django.views.decorators.http import etag, require_safe

from dashboard.shell import script_texts as texts
from dashboard.shell.access import PERMISSIONS, role_of
from dashboard.shell.viewmodels.glossary import GROUPS

_FOR_EVER = f"public, max-age={365 * 24 * 60 * 60}, immutable"


def _etag(request: HttpRequest, language: str, version: str) -> str | None:
    return f'"{texts.script_texts(language).version}"' if language in dict(settings.LANGUAGES) else None


@login_not_required
@require_safe
@etag(_etag)
def script_texts(request: HttpRequest, language: str, version: str) -> HttpResponse:
    """Return the texts in a language. Under the address of another version, as another replica's page has it while a release is
    installed, they are the ones of this process and not kept."""
    if language not in dict(settings.LANGUAGES):
        raise Http404
    script = texts.script_texts(language)
    answer = HttpResponse(script.content, content_type='text/javascript; charset="utf-8"')
    answer["Cache-Control"] = _FOR_EVER if version == script.version else "no-cache"
    return answer


@require_safe
def help_page(request: HttpRequest) -> HttpResponse:
    return render(request, "shell/help.html", {"granted": PERMISSIONS[role_of(request.user)], "groups": GROUPS})


@login_not_required
@require_safe
def favicon(request: HttpRequest) -> HttpResponse:
    """Redirect to static/favicon.ico, which is static/icon.svg drawn in 16, 32 and 48 pixels."""
    return redirect(static("favicon.ico"), permanent=False)
