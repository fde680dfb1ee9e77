"""Whatever somebody posts to a form, whoever may fill it in gets an answer, and never an error of the server."""

import os
import random
from collections.abc import Mapping
from html.parser import HTMLParser
from urllib.parse import urlencode, urlsplit

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction
from django.test import Client
from pytest_django.fixtures import Settings

from grid.runtime import Runtime
from tests.access.table import Row
from tests.access.test_table import HTTP
from tests.access.world import World, build
from tests.support.cluster import POPULATION, FakeCluster

POSTS = int(os.environ.get("HOSTILE_POSTS", "25"))  # to each form
FORM = "application/x-www-form-urlencoded"
REFUSED = ("login", "403", "404")
FORMS = [row for row in HTTP if row.method == "POST" and not set(row.answers.values()) <= set(REFUSED)]
HOSTILE: tuple[str, ...] = (
    *("", " ", "\t\n", "\0", "a\0b", "\x1b[31m", "\u202eevil", "\ufeff", "\ud7ff", "é" * 300, "😀" * 90, "x" * 70_000, "\r\n\r\n"),
    *("0", "-1", "-0", "1e309", "nan", "inf", "0x10", "1_000", "٣", "²", "9" * 19, "9" * 400, "1.5", "1,5", "+1", "2147483648"),
    *("null", "true", "[]", "{}", "[[[[[[", "{" * 3000, "[" * 3000, '{"a": NaN}', '{"": {"": []}}', '"', "'", "\\", "[1e400]"),
    *("' OR 1=1 --", "%", "%s%n", "{0.__class__}", "{{7*7}}", "{% load x %}", "${x}", "$(id)", "`id`", "<script>alert(1)</script>"),
    *("../../etc/passwd", "/", "//evil.example", "javascript:alert(1)", "http://[", "http://[::1", "http://a:99999/", "file:///"),
    *("https://" + "a" * 300 + ".example", "http://169.254.169.254/", "a@b", "a@b@c", "@", "x" * 255 + "@example.org"),
    *("(" * 500, "(a+)+$", "[", "(?P<a>", "(?P<a>x)(?P<a>y)", "\\", "a{99999}", "*", "?"),
    *("* * * * *", "60 24 32 13 8", "*/0 * * * *", "0-99999999 * * * *", "@reboot", "Europe/Nowhere", "../localtime", "Etc"),
    *("100Mi", "1e3Gi", "-1Gi", "1ZZ", "0.0000000001", "99999999999Ti", "1 core", "on", "off", "small", "churn", "owner"),
    *("A=B", "=", "A=\nB=C\n" * 200, "--rate 'unclosed", "x" * 300 + "=1", "a,b\n1,2\n3", "\n" * 5000, "2026-13-45T99:99", "0001-01-01"),
)  # fmt: skip
NAMES = ("id", "name", "do", "next", "token", "page", "base", "confirmed", "executions", "csrfmiddlewaretoken", "")
BODIES = (b"\xff\xfe\x00", b"%", b"=&=&=", b"a=%ff%fe", b"&" * 900, b"{", b"a" * 100_000)


class FormReader(HTMLParser):
    """Reads the fields of the page's forms that post to one address: their values as a browser would send them."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path
        self.fields: dict[str, list[str]] = {}
        self._is_in = False
        self._select = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._is_in = urlsplit(given.get("action") or self.path).path == self.path
        elif tag == "select":
            self._select = given.get("name", "")
        elif self._is_in and (name := given.get("name") or (self._select if tag == "option" else "")):
            values = self.fields.setdefault(name, [])
            if tag == "textarea" or given.get("type") not in ("checkbox", "radio") or "checked" in given:
                values.append(given.get("value", ""))

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._is_in = False


@pytest.fixture(scope="module")
def built(module_transaction: None) -> World:
    return build()


@pytest.fixture
def world(db: None, built: World, cluster: FakeCluster, runtime: Runtime, settings: Settings) -> World:
    settings.DEMO, cluster.sandbox = True, POPULATION
    built.show(cluster, runtime)
    return built


@pytest.mark.slow
@pytest.mark.parametrize("row", FORMS, ids=str)
def test_no_post_ends_in_an_error_of_the_server(row: Row, world: World) -> None:
    role = next(role for role in ("owner", "admin", *row.answers) if row.answers[role] not in REFUSED)
    client, path, rng = world.client(role), world.path(row), random.Random(str(row))
    filled = fields_of(client, path) | {name: [str(value)] for name, value in world.body(row).items()}
    for _ in range(POSTS):
        post(client, path, filled, rng)


def fields_of(client: Client, path: str) -> dict[str, list[str]]:
    """Return the fields of the page's own form, as it is shown; nothing when the page shows none."""
    reader = FormReader(path)
    reader.feed(client.get(path).content.decode())
    return reader.fields


def post(client: Client, path: str, filled: Mapping[str, list[str]], rng: random.Random) -> None:
    """Post one hostile form; what it changed is undone."""
    body = broken(filled, rng)
    kind = rng.random()
    with transaction.atomic():
        if kind < 0.05:
            sent: object = rng.choice(BODIES)
            answer = client.post(
                path, sent, content_type=rng.choice((FORM, "application/json", "multipart/form-data; boundary=x", ""))
            )
        elif kind < 0.15:
            name = rng.choice([*filled, *NAMES])
            sent = {**body, name: SimpleUploadedFile("../x\0.py", b"\0\xff" * 9)}
            answer = client.post(path, sent)
        else:
            sent = urlencode(body, doseq=True)
            answer = client.post(path, sent, content_type=FORM)
        transaction.set_rollback(True)
    assert answer.status_code < 500, sent


def broken(filled: Mapping[str, list[str]], rng: random.Random) -> dict[str, list[str]]:
    """Return the form with one to four fields left out, sent twice, or with hostile values."""
    body = {name: list(values) for name, values in filled.items()}
    for _ in range(rng.randint(1, 4)):
        name = rng.choice([*filled, *filled, *NAMES])
        match rng.randrange(8):
            case 0:
                body.pop(name, None)
            case 1:
                body[name] = [*body.get(name, []), rng.choice(HOSTILE)]
            case _:
                body[name] = [rng.choice(HOSTILE)]
    return body
