"""The texts of our scripts: who gets them, how long browsers keep them, and that they come in the page's language."""

import gzip

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from dashboard.shell.script_texts import script_texts_url
from tests.conftest import People


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
