"""The "?" beside a word, which opens what the word means."""

from typing import Any

from django import template
from django.template import Context
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from dashboard.shell.viewmodels.glossary import OF_FIELDS, TERMS
from grid.core.translation import gettext as _

register = template.Library()
_HTML = (
    '<span class="term"><button type="button" class="term-button" popovertarget="term-{0}" aria-label="{1}">?</button>'
    '<span class="term-note" id="term-{0}" popover><strong>{2}</strong> {3} <a href="{4}#{0}">{5}</a></span></span>'
)


@register.simple_tag(takes_context=True)
def term(context: Context, id: str) -> SafeString:
    """Return the "?" of a word of the glossary, where the word appears first on the page, and "" after that: ids are unique, and once is
    enough. Raise KeyError for an unknown word. It does not belong into what a live page sends again."""
    request: Any = context["request"]
    if not hasattr(request, "explained_terms"):
        request.explained_terms = set()
    term = TERMS[id]
    if id in request.explained_terms:
        return SafeString("")
    request.explained_terms.add(id)
    return format_html(_HTML, id, term.question, term.name, term.meaning, reverse("help"), _("More in the help"))


@register.simple_tag(takes_context=True)
def term_of_field(context: Context, name: str) -> SafeString:
    """Return the "?" of the word that a form's field is about; "" for a field that needs none."""
    return term(context, OF_FIELDS[name]) if name in OF_FIELDS else SafeString("")
