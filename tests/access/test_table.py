"""Every address answers every role as the table says, and nothing that answers is missing in it."""

from collections import Counter, defaultdict

import pytest
from django.http import HttpRequest, HttpResponse
from django.urls import NoReverseMatch, reverse
from pytest_django.fixtures import Settings

from grid import urls
from grid.runtime import Runtime
from tests.access.policy import check_policy
from tests.access.table import PROXY, ROLES, ROWS, Row
from tests.access.world import World, asked, build, routes
from tests.support.cluster import POPULATION, FakeCluster

ADMIN = "admin:"
REPLACED = {"admin:login", "admin:logout", "admin:password_change"}  # by pages of ours at the same addresses
PAGES = [row for row in ROWS if not row.route.startswith(PROXY)]
HTTP = [row for row in PAGES if row.method != "WS" and not row.route.endswith(":*")]
METHODS: dict[str, set[str]] = defaultdict(set)
for row in HTTP:
    METHODS[row.route].add(row.method)
DJANGOS = {route for route in routes() if route.startswith(ADMIN)} - REPLACED - set(METHODS)


@pytest.fixture(scope="module")
def built(module_transaction: None, tmp_path_factory: pytest.TempPathFactory) -> World:
    return build(tmp_path_factory.mktemp("repositories"))


@pytest.fixture
def world(db: None, built: World, cluster: FakeCluster, runtime: Runtime, settings: Settings) -> World:
    settings.REPOSITORIES = str(built.directory)  # or no project's files would be in Git
    settings.ALERTS_TOKEN = "t"  # or there would be nothing to refuse
    settings.DEMO, cluster.sandbox = True, POPULATION  # or the demonstration's page would not be there
    built.show(cluster, runtime)
    return built


@pytest.fixture
def short_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refusals without a page around them, which is the same each time and costs more than most of what is refused."""
    for code in (403, 404):

        def refuse(request: HttpRequest, exception: Exception, code: int = code) -> HttpResponse:
            return HttpResponse(status=code)

        monkeypatch.setattr(urls, f"handler{code}", refuse, raising=False)


def test_every_address_has_a_row_and_vice_versa() -> None:
    addresses = set(routes()) - DJANGOS - REPLACED
    unanswered, gone = sorted(addresses - set(METHODS)), sorted(set(METHODS) - addresses)
    assert not unanswered, (
        f"say in tests/access/answers.txt, for each of their methods, which role gets what: {unanswered}"
    )
    assert not gone, f"tests/access/answers.txt has rows of what is no address: {gone}"


# What no row shows to be had: by method and address, why nobody gets it.
NOBODY = {
    "GET admin/login/": "the dashboard's own login page is elsewhere",
    "GET admin/logout/": "a logout is a POST",
    "POST admin/logout/": "it leads to the login page, like that of the dashboard",
    "POST logout": "it leads to the login page",
    "POST alerts-received": "it is for the bearer of a token, whoever is logged in",
}
REFUSALS = {"login", "refused", "401", "403", "404", "405", "410"}


def test_every_address_is_asked_where_somebody_gets_it() -> None:
    """A row that is asked where nothing is says nothing of who would get it."""
    answers: dict[str, set[str]] = defaultdict(set)
    for row in ROWS:
        answers[f"{row.method} {row.route}"] |= set(row.answers.values())
    assert {address for address, given in answers.items() if given <= REFUSALS} == set(NOBODY)


def test_access_rows_are_unique() -> None:
    assert [name for name, times in Counter(map(str, ROWS)).items() if times > 1] == []


@pytest.mark.parametrize("row", HTTP, ids=str)
def test_each_role_gets_its_answer(row: Row, world: World, short_refusals: None) -> None:
    path, body = world.path(row), world.body(row)
    assert {role: asked(world.client(role), row.method, path, body) for role in ROLES} == row.answers


@pytest.mark.parametrize(("code", "title"), [("403", "No access"), ("404", "Page not found")])
def test_refusal_is_a_page_for_each_role_met(code: str, title: str, world: World) -> None:
    pages = [row for row in HTTP if row.method == "GET"]
    met = {role: next((row for row in pages if row.answers[role] == code), None) for role in ROLES}
    assert {role for role, row in met.items() if row} >= {"owner", "member", "viewer", "operator", "auditor"}
    for role, row in met.items():
        if row:
            answer = world.client(role).get(world.path(row))
            assert f"<h1>{title}</h1>" in answer.content.decode(), role
            check_policy(answer)


def test_methods_without_a_row_are_refused(world: World) -> None:
    client, wrong = world.client("admin"), dict[tuple[str, str], str]()
    for route, methods in METHODS.items():
        path = world.path(next(row for row in HTTP if row.route == route))
        unknown = {"GET", "POST", "PUT", "DELETE"} - methods
        wrong |= {(route, method): code for method in unknown if (code := asked(client, method, path, {})) != "405"}
    assert wrong == {}


@pytest.mark.parametrize("route", sorted(DJANGOS))
def test_the_pages_of_djangos_admin_are_for_admins(route: str, world: World) -> None:
    path = admin_path(route, world.people["stranger"].pk)
    for row in ROWS:
        if row.route == f"{ADMIN}*":
            for role in ROLES:
                answer = asked(world.client(role), row.method, path, {})
                assert (answer == "login") == (row.answers[role] == "login"), (row.method, role, answer)


def admin_path(route: str, user_id: int) -> str:
    possible: tuple[dict[str, object], ...] = (
        {},
        {"object_id": user_id},
        {"id": user_id},
        {"app_label": "auth"},
        {"content_type_id": 1, "object_id": user_id},
    )
    for arguments in possible:
        try:
            return reverse(route, kwargs=arguments)
        except NoReverseMatch:
            continue
    raise AssertionError(f"Say in `possible` which arguments {route} has.")
