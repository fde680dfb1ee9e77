"""The texts of our scripts: who gets them, how long browsers keep them, and that they come in the page's language."""

import gettext
import gzip
import json
import re
from collections.abc import Iterator

import pytest
from django.test import Client
from django.utils import translation
from django.utils.translation.trans_real import DjangoTranslation
from pytest_django import DjangoAssertNumQueries
from pytest_django.fixtures import Settings

from dashboard.shell.script_texts import script_texts, script_texts_url
from tests.conftest import People
from tests.test_scripts import SCRIPTS, in_catalogue

LANGUAGE = "eo"
COUNTED = "%(count)s new line ↓"
TEXTS = {text for path in SCRIPTS for text in in_catalogue(path.read_text())}


@pytest.fixture
def translated(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> Iterator[None]:
    """A language in which our texts stand in brackets, and one has three forms."""
    settings.LANGUAGES = [("en", "English"), (LANGUAGE, "Esperanto")]
    settings.USE_I18N = True
    # Django decides once whether it translates.
    monkeypatch.setattr(translation, "_trans", type(translation._trans)())  # type: ignore[attr-defined]
    catalogue = gettext.NullTranslations()
    texts: dict[object, str] = {"": "Plural-Forms: nplurals=3; plural=n%10;"}
    texts |= {text: f"[{text}]" for text in TEXTS if text != COUNTED}
    texts |= {(COUNTED, form): f"[{form}: %(count)s]" for form in range(3)}
    vars(catalogue).update(_catalog=texts, plural=lambda count: count % 10)
    read = DjangoTranslation._new_gnu_trans  # type: ignore[attr-defined]

    def fake(self: DjangoTranslation, localedir: str, *args: object, **kwargs: object) -> gettext.NullTranslations:
        ours = self.domain == "djangojs" and self.to_language() == LANGUAGE and "dashboard" in localedir
        return catalogue if ours else read(self, localedir, *args, **kwargs)

    monkeypatch.setattr(DjangoTranslation, "_new_gnu_trans", fake)
    script_texts.cache_clear()
    yield
    script_texts.cache_clear()


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


def test_the_texts_of_another_release_are_not_kept(db: None, client: Client) -> None:
    answer = client.get("/script-texts/en/before.js")
    assert answer.content == client.get(script_texts_url()).content
    assert answer["Cache-Control"] == "no-cache"


def test_script_texts_of_an_unknown_language_are_missing(db: None, client: Client, translated: None) -> None:
    assert client.get("/script-texts/de/1.js").status_code == 404


def test_page_loads_texts_before_scripts(db: None, client: Client) -> None:
    page = client.get("/login/").content.decode()
    first, second, *_ = re.findall(r'<script src="([^"]+)" defer nonce="[^"]+"></script>', page)
    assert (first, second) == (script_texts_url(), "/static/dashboard.js")


def test_every_text_comes_in_the_active_language(db: None, client: Client, translated: None) -> None:
    english = script_texts_url()
    with translation.override(LANGUAGE):
        address = script_texts_url()
    assert address != english
    content = client.get(address).content.decode()
    match = re.search(r"const newcatalog = (\{.*?\n  \});", content, re.DOTALL)
    assert match
    catalogue = json.loads(match[1])
    assert catalogue.pop(COUNTED) == [f"[{form}: %(count)s]" for form in range(3)]
    assert catalogue == {text: f"[{text}]" for text in TEXTS if text != COUNTED}
    assert "const v = n%10;" in content
