"""Whatever somebody posts to a form, whoever may fill it in gets an answer, and never an error of the server."""

import os
import random
from collections.abc import Collection, Mapping
from dataclasses import replace
from html.parser import HTMLParser
from urllib.parse import urlencode, urlsplit

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction
from django.test import Client
from pytest_django.fixtures import Settings

from grid.runtime import Runtime
from tests.access.table import Row
from tests.access.test_table import DJANGOS, HTTP, admin_path
from tests.access.world import REMOTE, World, build
from tests.files.test_remotes import HOST_KEY
from tests.support.cluster import POPULATION, FakeCluster

POSTS = int(os.environ.get("HOSTILE_POSTS", "25"))  # to each form
FORM = "application/x-www-form-urlencoded"
REFUSED = ("login", "403", "404")
ALSO = ("logout",)  # which leads to the login page
FORMS = [
    row for row in HTTP if row.method == "POST" and (row.route in ALSO or not set(row.answers.values()) <= set(REFUSED))
]
# On which page the form is, where the address itself only takes it.
PAGE_OF = {
    **dict.fromkeys(("launch-estimate", "launch-objects", "launch-check", "launch-choices"), "launch"),
    "tier-new-check": "tier-new",
    "tier-check": "tier",
    "schedule-check": "schedule-new",
    "project": "project-settings",
}
# The fields of forms that are small, or shown only at times.
FIELDS: dict[str, dict[str, str]] = {
    "notifications-read": {"notification": "1", "page": "1"},
    "notification-choices": {"choice": "failed:email"},
    "notification-test": {"channel": "email"},
    "table-view": {"table": "executions", "column": "owner", "density": "compact", "next": "/"},
    "first-steps-hide": {"card": "launch"},
    "join": {"new_password1": "x", "new_password2": "x"},
    "theme": {"theme": "dark", "next": "/"},
    "session-end": {"session": "x"},
    "person-sessions-end": {"session": "x"},
    "queue-order": {"do": "before", "before": "x", "reason": "First"},
    "queue-takeover": {"do": "take", "minutes": "15", "reason": "Outage"},
    "verbose-logs": {"subject": "web", "reason": "Outage"},
    "queue-hold": {"reason": "Later"},
    "executions-message": {"id": "x", "reason": "Save your work"},
    "announcement-hide": {"announcement": "upgrade"},
    "execution-keep": {"stops_at": "2026-03-04T10:00:00+00:00"},
    "project-file-delete": {"path": "a.txt", "at": "a"},
    "project-file-move": {"target": "b.txt"},
    "workspace-share": {"port": "8501", "name": "Demo", "hours": "0", "members": "1"},
    "workspace-unshare": {"share": "x"},
    "project-push-again": {"name": "workspace-x"},
    "project-remote-confirm": {"key": HOST_KEY, "url": REMOTE},
    "node-cordon": {"do": "cordon", "reason": "New kernel"},
    "node-drain": {"do": "drain", "reason": "New kernel"},
    "node-mark": {
        "do": "taint",
        "key": "example.com/team",
        "value": "a",
        "effect": "NoSchedule",
        "looked_at": "x",
        "reason": "x",
    },
    "pool-limits": {"minimum": "1", "maximum": "3", "was": "1-5", "reason": "x"},
    "rush": {"places": "2", "tier": "small", "environment": "jupyterlab", "days": "mon", "on": "2026-03-04"}
    | {"zone": "UTC", "ready": "09:00", "until": "12:00", "early": "5"},
    "demonstration-failure": {"pool": "default"},
}
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
FILE_NAMES = (
    "../x\0.py", "a.txt", "a/../../b", ".git/config", "con", "-rf", " ", "\u202ea", "x" * 300, "é😀.ipynb", "a\nb",
)  # fmt: skip
BODIES = (b"\xff\xfe\x00", b"%", b"=&=&=", b"a=%ff%fe", b"&" * 900, b"{", b"a" * 100_000)

TOKEN = "csrfmiddlewaretoken"
BUTTONS = {
    "email-confirm", "email-send-again", "email-cancel",
    "logout", "sessions-end-others", "webhook-remove", "view-default", "view-delete", "secret-delete",
    "queue-cancel", "queue-release", "executions-stop", "jobs-stop", "execution-stop", "execution-open",
    "execution-restart-head", "workspace-restart", "workspace-restart-cancel", "workspace-delete", "job-stop",
    "job-delete", "schedule-pause", "schedule-delete", "tier-archive", "tier-revert", "environment-archive",
    "environment-revert", "project-archive", "project-revert", "project-secret-delete", "project-remote-test",
    "project-remote-remove", "person-link", "knowledge-entry-archive", "knowledge-entry-revert", "person-deactivate",
    "person-activate", "announcement-end", "rush-remove", "execution-support", "platform-support",
    "api-checks-run", "silence-end",
}  # fmt: skip


class FormReader(HTMLParser):
    """Reads the fields of the page's forms that post to one address: their values as a browser would send them."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path
        self.fields: dict[str, list[str]] = {}
        self._is_in = False
        self.files: set[str] = set()
        self._select = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._is_in = urlsplit(given.get("action") or self.path).path == self.path
        elif tag == "select":
            self._select = given.get("name", "")
        elif self._is_in and (name := given.get("name") or (self._select if tag == "option" else "")):
            values = self.fields.setdefault(name, [])
            if given.get("type") == "file":
                self.files.add(name)
            if tag == "textarea" or given.get("type") not in ("checkbox", "radio") or "checked" in given:
                values.append(given.get("value", ""))

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._is_in = False


@pytest.fixture(scope="module")
def built(module_transaction: None, tmp_path_factory: pytest.TempPathFactory) -> World:
    return build(tmp_path_factory.mktemp("repositories"))


@pytest.fixture
def world(db: None, built: World, cluster: FakeCluster, runtime: Runtime, settings: Settings) -> World:
    settings.REPOSITORIES = str(built.directory)  # or there would be neither uploads nor remote repositories
    settings.DEMO, cluster.sandbox = True, POPULATION
    built.show(cluster, runtime)
    return built


@pytest.mark.slow
@pytest.mark.parametrize("row", FORMS, ids=str)
def test_no_post_ends_in_an_error_of_the_server(row: Row, world: World) -> None:
    client, path, rng = world.client(who_posts(row)), world.path(row), random.Random(str(row))
    filled, files = form_of(client, world, row)
    for _ in range(POSTS):
        post(client, path, filled, files, rng)


@pytest.mark.slow
@pytest.mark.parametrize("route", sorted(DJANGOS))
def test_hostile_posts_to_django_admin_raise_no_server_error(route: str, world: World) -> None:
    client, path, rng = world.client("admin"), admin_path(route, world.people["stranger"].pk), random.Random(route)
    filled, files = shown_at(client, path)
    for _ in range(POSTS):
        post(client, path, filled, files, rng)


@pytest.mark.slow
def test_the_fields_of_every_form_are_known(world: World) -> None:
    """Or what is posted would be turned away before anything reads it; but for those that are a button alone."""
    without = {row.route for row in FORMS if not set(form_of(world.client(who_posts(row)), world, row)[0]) - {TOKEN}}
    assert sorted(without ^ BUTTONS) == []


def who_posts(row: Row) -> str:
    """Somebody who may: for the login page somebody who is not logged in."""
    roles = ("nobody",) if row.route == "login" else ("owner", "admin", *row.answers)
    return next((role for role in roles if row.answers[role] not in REFUSED), "lead")


def form_of(client: Client, world: World, row: Row) -> tuple[dict[str, list[str]], set[str]]:
    """Return the form as its page shows it, filled as far as little is needed, and which of its fields take files."""
    shown, files = shown_at(client, world.path(replace(row, route=PAGE_OF.get(row.route, row.route))))
    own = {name: [str(value)] for name, value in (FIELDS.get(row.route, {}) | dict(world.body(row))).items()}
    return shown | own, files


def shown_at(client: Client, path: str) -> tuple[dict[str, list[str]], set[str]]:
    """Return the fields of the forms that a page posts to itself, and which of them take files; none where there is no page."""
    reader = FormReader(path)
    reader.feed(client.get(path).content.decode())
    return reader.fields, reader.files


def post(
    client: Client, path: str, filled: Mapping[str, list[str]], files: Collection[str], rng: random.Random
) -> None:
    """Post one hostile form; what it changed is undone."""
    body = broken(filled, rng)
    kind = rng.random()
    with transaction.atomic():
        if kind < 0.05:
            sent: object = rng.choice(BODIES)
            answer = client.post(
                path, sent, content_type=rng.choice((FORM, "application/json", "multipart/form-data; boundary=x", ""))
            )
        elif kind < (0.75 if files else 0.15):
            name = rng.choice([*files] if files else [*filled, *NAMES])
            sent = {**body, name: [file_of(rng) for _ in range(rng.choice((1, 1, 2, 60)))]}
            answer = client.post(path, sent)
        else:
            sent = urlencode(body, doseq=True)
            answer = client.post(path, sent, content_type=FORM)
        transaction.set_rollback(True)
    assert answer.status_code < 500, sent


def file_of(rng: random.Random) -> SimpleUploadedFile:
    return SimpleUploadedFile(rng.choice(FILE_NAMES), rng.choice((b"", b"x", b"\0\xff" * 9, b"x" * 300_000)))


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
