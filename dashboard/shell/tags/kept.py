"""`{% kept "name tier" %} ... {% endkept %}`: a part of a live row that is rendered once for each value of these fields of its view-model.
Where one figure of a row changes, most of it stays as it was, and rendering all of it takes longer than finding out what changed."""

from collections.abc import Hashable
from operator import attrgetter

from django import template
from django.template import Context, Node, NodeList, TemplateSyntaxError
from django.template.base import Parser, Token
from django.utils.safestring import SafeString

register = template.Library()

MOST = 10_000  # of each part, which is some hundred bytes; then all are forgotten, of which nearly all are rows that are gone


class Kept(Node):
    """A part of a template of which `x` has the named fields, two or more, and nothing else is known: it cannot depend on more."""

    def __init__(self, names: list[str], nodelist: NodeList) -> None:
        self.nodelist = nodelist
        self._names = names
        self._values_of = attrgetter(*names)
        self.known: dict[Hashable, SafeString] = {}

    def render(self, context: Context) -> SafeString:
        values = self._values_of(context["x"])
        html = self.known.get(values)
        if html is None:
            fields = dict(zip(self._names, values, strict=True))
            html = self.nodelist.render(context.new({"x": fields}))
            if len(self.known) >= MOST:
                self.known.clear()
            self.known[values] = html
        return html


@register.tag
def kept(parser: Parser, token: Token) -> Kept:
    """Return the part up to `endkept`, which depends on the named fields of `x` alone."""
    names = token.contents.partition(" ")[2].strip("\"'").split()
    if len(names) < 2:
        raise TemplateSyntaxError("kept takes the names of two fields or more, in quotes.")
    nodelist = parser.parse(("endkept",))
    parser.delete_first_token()
    return Kept(names, nodelist)
