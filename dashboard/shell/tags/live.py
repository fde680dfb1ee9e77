"""Tags of live pages: `{% fragment "id" %}`, `{% fragments "region" %}`, and times that go on by themselves in the browser."""

from datetime import datetime
from functools import lru_cache
from typing import Any, Protocol

from django import template
from django.template import Context
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from dashboard.shell.fragments import render_fragment
from dashboard.shell.viewmodels import format as formats
from dashboard.shell.viewmodels.live import Fragment
from dashboard.shell.viewmodels.states import StatusLine, state_status
from grid.core.translation import gettext as _

register = template.Library()


class SortedView(Protocol):
    """A page's view that is sorted by one column."""

    @property
    def sort(self) -> str: ...

    @property
    def descending(self) -> bool: ...

    def query(self, **changed: Any) -> str: ...


@register.simple_tag(takes_context=True)
def fragment(context: Context, id: str) -> SafeString:
    """Render the fragment with that id that is outside any region; "" when there is none."""
    fragment = next((known for known in context["fragments"] if known.id == id and not known.region), None)
    return rendered(context, fragment) if fragment else SafeString("")


@register.simple_tag(takes_context=True)
def fragments(context: Context, region: str) -> SafeString:
    return SafeString("\n".join(rendered(context, known) for known in context["fragments"] if known.region == region))


@register.simple_tag(takes_context=True)
def rendered(context: Context, fragment: Fragment) -> SafeString:
    return SafeString(render_fragment(fragment, now=context["now"]))


@register.simple_tag(takes_context=True)
def age(context: Context, moment: datetime | None) -> SafeString:
    """Return the time since `moment` as an element that the browser keeps up to date."""
    return _time(moment, "age", formats.age(moment, context["now"]))


@register.simple_tag(takes_context=True)
def until(context: Context, moment: datetime | None) -> SafeString:
    """Return the time until `moment` as an element that the browser keeps up to date."""
    return _time(moment, "until", "" if moment is None else formats.until(moment, context["now"]))


@register.simple_tag(name="status")
@lru_cache(maxsize=1_000, typed=True)  # there are few; "typed", because a word with markup may equal one without
def status_word(severity: str, word: str, css: str = "", *, tag: str = "span", role: str = "") -> SafeString:
    """Return a status as a shape, a colour and a word; `css` are more classes, `tag` the element, such as "strong"."""
    classes = f" {css}" if css else ""
    spoken = format_html(' role="{}"', role) if role else ""
    return format_html('<{0} class="status status-{1}{2}"{3}>{4}</{0}>', tag, severity, classes, spoken, word)


@register.simple_block_tag(end_name="endstatus_of")
def status_of(content: str, severity: str, css: str = "", *, tag: str = "span") -> SafeString:
    """Return a status whose words have markup of their own, which stands between the tags."""
    return status_word(severity, mark_safe(content), css, tag=tag)


@register.simple_tag
@lru_cache(maxsize=1_000)  # of many pods, and of the next change, it is the same
def status_line(status: StatusLine, advice: str = "") -> SafeString:
    """Return a status in one line: its word, and its cause as far as there is room. It opens to the whole, with what to do next."""
    word = status_word(status.severity, status.word)
    if not status.note:
        return word
    next_step = format_html("<p>{}</p>", advice) if advice else ""
    html = '<details class="why"><summary>{} <span class="why-note">{}</span></summary>{}</details>'
    return format_html(html, word, status.note, next_step)


@register.simple_tag
def final_status(state: str, message: str) -> SafeString:
    return status_line(state_status(state, message=message)[0])


@register.simple_tag
def meter(percent: int, used: str) -> SafeString:
    html = '<svg class="meter" role="img" aria-label="{0}"><title>{0}</title><rect width="{1}%" height="100%"/></svg>'
    return format_html(html, _("{used} used", used=used), percent)


@register.simple_tag
def select_all() -> SafeString:
    """Return a box for a column's head that selects all rows of the page; it needs a script."""
    box = '<input type="checkbox" class="select-all" data-select-all aria-label="{}">'
    return format_html(box, _("Select all rows of this page"))


@register.simple_tag
def sort_header(view: SortedView, column: str, title: str, css: str = "", *, selects: bool = False) -> SafeString:
    """Return a column's header with a link that sorts by it, or reverses the order when the view is sorted by it already. Numbers (class
    "num") are first sorted with the largest on top. The link keeps the filter and goes to the first page. With `selects`, a box before the
    title selects all rows of the page; it needs a script."""
    is_current = view.sort == column
    descending = not view.descending if is_current else "num" in css.split()
    state = format_html(' aria-sort="{}"', "descending" if view.descending else "ascending") if is_current else ""
    link = view.query(sort=column, descending=descending, page=1)
    box = select_all() if selects else ""
    return format_html('<th scope="col" class="{}"{}>{}<a href="{}">{}</a></th>', css, state, box, link, title)


# Finding the addresses took a third of a row's rendering, and the same rows are rendered again and again.
@register.filter
@lru_cache(maxsize=20_000)
def execution_url(id: str) -> str:
    return reverse("execution", args=[id])


@register.filter
@lru_cache(maxsize=20_000)
def pod_url(namespace: str, name: str) -> str:
    return reverse("pod", args=[namespace, name])


@register.filter
@lru_cache(maxsize=20_000)
def node_url(name: str) -> str:
    return reverse("node", args=[name])


@register.filter
def clock_time(moment: datetime | None) -> str:
    return "" if moment is None else formats.clock_time(moment)


@lru_cache(maxsize=20_000)
def _time(moment: datetime | None, kind: str, text: str) -> SafeString:
    if moment is None:
        return format_html('<span class="muted">{}</span>', _("unknown"))
    stamp = moment.isoformat(timespec="seconds")
    return format_html('<time datetime="{}" data-{} title="{}">{}</time>', stamp, kind, stamp, text)
