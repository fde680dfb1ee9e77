"""The texts of our scripts in each language: Django's catalogue for JavaScript, under an address that names what it holds. An answer never
changes under its address, so a browser asks once and keeps it until the texts have changed."""

import functools
import hashlib
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import translation
from django.views.decorators.http import etag, require_safe
from django.views.i18n import JavaScriptCatalog

_FOR_EVER = f"public, max-age={365 * 24 * 60 * 60}, immutable"


class _Catalog(JavaScriptCatalog):
    """Our own texts, not those of Django's admin; and no formats of dates, which no script of ours writes."""

    packages = ["dashboard"]

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return {"catalog": self.get_catalog(), "formats": {}, "plural": self.get_plural()}


@functools.cache
def _texts(language: str) -> tuple[bytes, str]:
    """Return a script that defines `gettext` and its like for one of the settings' languages, read once, and the version of its content."""
    with translation.override(language):
        content = _Catalog().get(HttpRequest()).content
    return content, hashlib.sha256(content).hexdigest()[:12]


def script_texts_url() -> str:
    """Return the address of the texts of our scripts in the language that is active."""
    language = translation.get_language() or settings.LANGUAGE_CODE
    return reverse("script-texts", kwargs={"language": language, "version": _texts(language)[1]})


def _etag(request: HttpRequest, language: str, version: str) -> str | None:
    return f'"{_texts(language)[1]}"' if language in dict(settings.LANGUAGES) else None


@login_not_required
@require_safe
@etag(_etag)
def script_texts(request: HttpRequest, language: str, version: str) -> HttpResponse:
    """Return the texts in a language. Under the address of another version, as another replica's page has it while a release is
    installed, they are the ones of this process and not kept."""
    if language not in dict(settings.LANGUAGES):
        raise Http404
    content, own_version = _texts(language)
    answer = HttpResponse(content, content_type='text/javascript; charset="utf-8"')
    answer["Cache-Control"] = _FOR_EVER if version == own_version else "no-cache"
    return answer
