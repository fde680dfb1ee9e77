"""Every text of a template goes through Django's translation."""

import re

import pytest

from tests.support import texts
from tests.support.template_texts import untranslated

# Texts of the product are words; these are not, although they stand where words do.
NOT_TEXTS = {
    ("shell/fragments/instant_filter.html", None): "it is included inside a tag, and has attributes alone",
    ("logs/fragments/log.html", '"log"'): "an element's id",
    ("shell/fragments/tabs.html", "'tab'"): "a parameter's name",
}


def test_every_text_of_a_template_is_translated() -> None:
    missed, used = [], set()
    for path in (path for path in texts.files() if path.suffix == ".html"):
        for line, text in untranslated(path.read_text()):
            name = str(path.relative_to(texts.ROOT / "templates"))
            reasons = {(name, text), (name, None)} & NOT_TEXTS.keys()
            used |= reasons
            if not reasons:
                missed.append(f"templates/{name}:{line}: {text}")
    assert not missed, "put these into {% translate %}, {% blocktranslate %} or _():\n" + "\n".join(missed)
    assert used == NOT_TEXTS.keys(), "an exception that nothing needs"


def test_no_template_compares_with_a_text() -> None:
    """Which would be another one in another language; names of Kubernetes' kinds and of classes stay."""
    compared = {
        f"{path.relative_to(texts.ROOT)}: {text}"
        for path in texts.files()
        if path.suffix == ".html"
        for text in re.findall(r'[!=]= "([A-Z][^"]*)"', path.read_text())
        if text not in ("Pod", "Node", "Resolver404")
    }
    assert not compared, "compare with a value that is not shown"


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("<p>\n  Save it</p>", [(2, "Save it")]),
        ("<p>{{ name }} ended</p>", [(1, "ended")]),
        ('<a title="Full name">{{ name }}</a>', [(1, "Full name")]),
        ('<a title="{% if x %}Full name{% endif %}" class="some words">{{ name }}</a>', [(1, "Full name")]),
        ('{% include "empty.html" with headline="No lines" url=x %}', [(1, '"No lines"')]),
        ('{{ x|default:"none yet" }}', [(1, '"none yet"')]),
        ('{% status "wait" "Due" %}', [(1, '"Due"')]),
        ('<p>{% translate "Save it" %}: {% blocktranslate %}{{ name }} ended{% endblocktranslate %}</p>', []),
        ('<a title="{% translate "Full name" %}">{{ x|default:_("none yet") }}</a>', []),
        ("<p><code>kubectl get</code>, {{ size }} GiB &nbsp;·</p><script>let a = b;</script><!-- for us -->", []),
    ],
)
def test_texts_without_translation_are_found(template: str, expected: list[tuple[int, str]]) -> None:
    assert list(untranslated(template)) == expected
