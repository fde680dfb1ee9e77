"""The texts of our scripts in each language: Django's catalogue for JavaScript, under an address that names what it holds.

An answer never changes under its address, so a browser asks once and keeps it until the texts have changed.
"""

import functools
import hashlib
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils import translation
from django.views.i18n import JavaScriptCatalog


class _Catalog(JavaScriptCatalog):
    """Our own texts, not those of Django's admin; and no formats of dates, which no script of ours writes."""

    packages = ["dashboard"]

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return {"catalog": self.get_catalog(), "formats": {}, "plural": self.get_plural()}


@dataclass(frozen=True, slots=True)
class ScriptTexts:
    """A script that defines `gettext` and its like for one language. The version stands for the content."""

    content: bytes
    version: str


@functools.cache
def script_texts(language: str) -> ScriptTexts:
    """Return the texts in one of the settings' languages, read once."""
    with translation.override(language):
        content = _Catalog().get(HttpRequest()).content
    return ScriptTexts(content, hashlib.sha256(content).hexdigest()[:12])


def script_texts_url() -> str:
    """Return the address of the texts in the language that is active."""
    language = translation.get_language() or settings.LANGUAGE_CODE
    return reverse("script-texts", kwargs={"language": language, "version": script_texts(language).version})
