"""The "?" beside words, the help page, and the texts of our scripts, which come in the page's language."""

import gzip
import re
from pathlib import Path

import pytest
from django.conf import settings
from django.http import HttpRequest
from django.template import Context, Template
from django.template.loader import get_template
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from dashboard.shell.script_texts import script_texts_url
from dashboard.shell.viewmodels.glossary import GROUPS, OF_FIELDS, TERMS
from tests.conftest import People, client_of
from tests.support.golden import assert_golden

TEMPLATES = Path(settings.BASE_DIR, "templates")
USES = sorted(
    {
        (str(path.relative_to(TEMPLATES)), term)
        for path in TEMPLATES.rglob("*.html")
        for term in re.findall(r"\{% term (\S+) %\}", path.read_text())
    }
)


def rendered(source: str) -> str:
    return Template("{% load help %}" + source).render(Context({"request": HttpRequest()}))


@pytest.mark.parametrize(("name", "term"), USES)
def test_template_terms_are_in_the_glossary(name: str, term: str) -> None:
    get_template(name)
    assert "popover" in rendered(f"{{% term {term} %}}")


def test_every_term_of_a_field_is_in_the_glossary() -> None:
    assert set(OF_FIELDS.values()) <= set(TERMS)


def test_ids_of_terms_are_unique_and_meanings_are_sentences() -> None:
    assert len(TERMS) == sum(len(terms) for _title, terms in GROUPS.values())
    for id, term in TERMS.items():
        assert re.fullmatch(r"[a-z-]+", id)
        assert term.meaning.endswith(".")
        assert term.question.endswith("?")


def test_question_mark_opens_the_meaning_without_a_script() -> None:
    assert_golden("term", rendered('{% term "hardware-tier" %}'))


def test_second_use_of_a_term_renders_nothing() -> None:
    assert rendered('{% term "slot" %}{% term "slot" %}').count("<button") == 1
    assert rendered('{% term "slot" %}{% term "quota" %}').count("<button") == 2


@pytest.mark.django_db
@pytest.mark.usefixtures("runtime")
class TestPages:
    def test_help_lists_terms_at_their_linked_anchors(self, people: People) -> None:
        page = client_of(people.stranger).get("/help/").content.decode()
        for id in TERMS:
            assert page.count(f'<div id="{id}">') == 1
        assert 'href="/help/#slot"' in rendered('{% term "slot" %}')

    def test_guide_links_open_for_their_readers(self, people: People) -> None:
        opened = set[str]()
        for person in (people.owner, people.operator, people.admin):
            client = client_of(person)
            page = client.get("/help/").content.decode()
            guides = page[page.index('id="guides"') : page.index('id="glossary"')]
            links = set(re.findall(r'<li>[^<]*<a href="([^"]+)"', guides))
            assert links
            for link in links - opened:  # those of the next person are more
                assert client.get(link).status_code == 200, link
            opened |= links


@pytest.mark.parametrize("person", ["nobody", "stranger", "admin"])
def test_script_texts_are_cached_without_login_or_query(
    person: str, people: People, client: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    if person != "nobody":
        client.force_login(getattr(people, person))
    with django_assert_num_queries(0):
        answer = client.get(script_texts_url())
    assert answer.status_code == 200
    assert answer["Content-Type"] == 'text/javascript; charset="utf-8"'
    assert answer["Cache-Control"] == "public, max-age=31536000, immutable"
    assert answer["Vary"] == "Accept-Encoding"
    assert not answer.cookies
    assert len(answer.content) < 3000
    assert len(gzip.compress(answer.content)) < 1000
    assert client.get(script_texts_url(), headers={"If-None-Match": answer["ETag"]}).status_code == 304
