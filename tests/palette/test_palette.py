"""The command palette: who finds what over HTTP, that nothing is found that may not be opened, and in what order."""

import re
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.template import Context
from django.test import RequestFactory

from dashboard.executions.history import latest_ended
from dashboard.palette.viewmodel import PaletteGroup, PaletteItem, PaletteQuery, in_order, results_sentence
from dashboard.shell.access import viewer_of
from dashboard.shell.tags.frame import navigation
from grid.configuration import REGISTRY
from grid.kube.resources import NODES
from grid.models import Execution, State, User
from grid.runtime import Runtime
from tests.conftest import People, client_of, page_at
from tests.executions.executing import make_execution, make_project, make_tier, make_workspace, read_executions
from tests.support.builders import MOMENT, node
from tests.support.cluster import FakeCluster
from tests.support.runtime import fill

HOSTILE = '"><script>alert(1)</script>'
_ITEM = re.compile(r'<(?:a|button)[^>]* role="option"[^>]*?(?:href|value)="([^"]*)">')
ENDED: dict[str, Any] = {"state": State.FAILED, "ended_at": MOMENT, "settled_at": MOMENT}


def page(user: User, text: str = "", **query: str) -> str:
    return page_at(user, "/palette/", q=text, **query)


def options(user: User, text: str = "") -> list[str]:
    """The addresses of the options, without those that search further."""
    addresses = [unescape(url) for url in _ITEM.findall(page(user, text, options="1"))]
    return [url for url in addresses if "text=" not in url]


@pytest.fixture
def grid(people: People, runtime: Runtime, cluster: FakeCluster) -> Runtime:
    """A project with an active and an ended execution of each kind of search, and a node; all named after zebras."""
    project = make_project(people.owner, people.teammate, id="zebras", name="Zebra stripes")
    make_execution(people.owner, project, id="active1", title="Count zebras")
    make_execution(people.owner, project, id="ended1", title="Old zebras", **ENDED)
    make_tier("zebra", name="Zebra tier")
    cluster.put(NODES, node("zebra-node"))
    fill(runtime, cluster)
    read_executions(runtime)
    return runtime


EXECUTIONS = ["/executions/active1/", "/executions/ended1/"]
FOUND = {
    "owner": [*EXECUTIONS, "/projects/zebras/"],
    "teammate": [*EXECUTIONS, "/projects/zebras/"],
    "stranger": [],
    "auditor": [*EXECUTIONS, "/nodes/zebra-node/", "/projects/zebras/"],
    "operator": [*EXECUTIONS, "/nodes/zebra-node/", "/projects/zebras/"],
    "admin": [*EXECUTIONS, "/nodes/zebra-node/", "/projects/zebras/", "/tiers/zebra/"],
}


def person(people: People, who: str) -> User:
    if who != "auditor":
        return getattr(people, who)  # type: ignore[no-any-return]
    auditor = User.objects.create_user("auditor")
    auditor.groups.add(Group.objects.get_or_create(name="auditors")[0])
    return auditor


@pytest.mark.parametrize("who", FOUND)
def test_everybody_finds_what_they_may_open(people: People, grid: Runtime, who: str) -> None:
    assert sorted(options(person(people, who), "zebra")) == sorted(FOUND[who])


@pytest.mark.slow
@pytest.mark.parametrize("who", FOUND)
def test_everything_found_can_be_opened(people: People, grid: Runtime, who: str) -> None:
    user = person(people, who)
    client = client_of(user)
    urls = {url for text in ("", "zebra", "a", "e") for url in options(user, text) if url.startswith("/")}
    assert {url: client.get(url).status_code for url in urls} == dict.fromkeys(urls, 200)


@pytest.mark.parametrize(
    ("text", "id"),
    [
        *((text, "active1") for text in ("active1", "workspace-active1", "count zeb", "ZEBRAS COUNT")),
        *((text, "ended1") for text in ("ended1", "workspace-ended1", "old zeb")),
    ],
)
def test_execution_matches_by_title_id_and_object_name(people: People, grid: Runtime, text: str, id: str) -> None:
    assert options(people.owner, text) == [f"/executions/{id}/"]


STOP, LOG = "/executions/active1/stop/", "/executions/active1/?tab=log#log"
DONE = {
    "owner": [LOG, STOP],
    "teammate": [LOG],
    "stranger": [],
    "auditor": [LOG],
    "operator": [LOG, STOP],
    "admin": [LOG, STOP],
}


@pytest.mark.parametrize("who", DONE)
def test_actions_on_an_execution_are_what_one_may_do(people: People, grid: Runtime, who: str) -> None:
    user = person(people, who)
    assert [url for text in ("log zeb", "stop zeb", "sto count") for url in options(user, text)] == [
        *(url for url in DONE[who] if url == LOG),
        *(url for url in DONE[who] if url == STOP),
        *(url for url in DONE[who] if url == STOP),
    ]
    opens = 'formaction="/executions/active1/open/"' in page(user, "open zebras", options="1")
    assert opens == (who == "owner")


def test_stopping_execution_is_not_offered_to_stop_or_open(people: People, grid: Runtime) -> None:
    Execution.objects.filter(pk="active1").update(state=State.STOPPING)
    read_executions(grid)
    assert options(people.owner, "stop zebras") == []
    assert "formaction" not in page(people.owner, "open zebras", options="1")


def test_former_member_finds_own_executions_only(people: People, grid: Runtime) -> None:
    project = Execution.objects.get(pk="active1").project
    make_execution(people.stranger, project, id="own1", title="Own zebras")
    read_executions(grid)
    assert options(people.stranger, "zebra") == ["/executions/own1/"]


def test_own_workspaces_match_without_deleted_or_foreign_ones(people: People, grid: Runtime) -> None:
    project = Execution.objects.get(pk="active1").project
    kept, deleted = (make_workspace(people.owner, project, title="Giraffe") for _ in range(2))
    make_workspace(people.teammate, project, title="Giraffe")
    deleted.deleted_at = MOMENT
    deleted.save()
    workspaces = [url for url in options(people.owner, "giraffe") if url.startswith("/workspaces/")]
    assert workspaces == [f"/workspaces/{kept.pk}/"]
    assert f"/workspaces/{kept.pk}/" in options(people.owner, f"workspace-{kept.pk}")


def test_a_setting_leads_to_its_place_on_the_page(people: People, grid: Runtime) -> None:
    setting = next(iter(REGISTRY.values()))
    assert f"/configuration/#value-{setting.key}" in options(people.admin, setting.key)
    configuration = client_of(people.admin).get("/configuration/").content.decode()
    assert {key for key in REGISTRY if f'id="value-{key}"' not in configuration} == set()
    assert options(people.operator, setting.key) == []


@pytest.mark.parametrize("who", ["owner", "admin"])
def test_navigation_pages_have_icons_and_match_by_title(people: People, grid: Runtime, who: str) -> None:
    request: Any = RequestFactory().get("/")
    request.user = getattr(people, who)
    links = [link for _title, links in navigation(Context({"request": request})) for link in links]
    assert len(links) > 1
    icons = Path("static/icons.svg").read_text()
    undrawn = [link.name for link in links if f'<symbol id="{link.name}"' not in icons]
    assert not undrawn, f"draw them as <symbol id=...> in static/icons.svg: {undrawn}"
    assert [link.name for link in links if link.url not in options(request.user, link.title)] == []


def test_empty_palette_explains_itself_and_offers_own_items(people: People, grid: Runtime) -> None:
    empty = page(people.owner, options="1")
    assert (
        "Find an execution by title, id or object name, or a workspace, job, project, saved view, page or action by name."
        in empty
    )
    assert "saved view, node, page" in page(people.operator, options="1")
    assert {"/", "/launch/", "/launch/?kind=workspace", "/executions/active1/", "dark"} <= set(options(people.owner))
    assert "/executions/active1/" not in options(people.operator)


def test_palette_without_result_links_to_whole_history(people: People, grid: Runtime) -> None:
    empty = page(people.owner, "no & such")
    assert "Nothing found for “no &amp; such”." in empty
    assert 'href="/executions/?show=ended&amp;text=no+%26+such"' in empty


@pytest.mark.parametrize("as_options", ["", "1"])
def test_hostile_names_and_texts_are_escaped(people: People, grid: Runtime, as_options: str) -> None:
    project = Execution.objects.get(pk="active1").project
    make_execution(people.owner, project, title=HOSTILE)
    make_execution(people.owner, project, title=HOSTILE, **ENDED)
    read_executions(grid)
    answer = page(people.owner, HOSTILE, options=as_options)
    assert answer.count("&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;") >= 4
    assert "<script>alert" not in answer


def test_latest_ended_executions_are_searched_and_older_by_id(people: People) -> None:
    project = make_project(people.owner)
    for number in range(120):
        make_execution(people.owner, project, id=f"e{number}", title="needle" if number in (3, 100) else "hay",
                       **{**ENDED, "ended_at": MOMENT - timedelta(minutes=number)})  # fmt: skip
    viewer = viewer_of(people.operator)
    assert viewer is not None

    def matching(*words: str) -> list[str]:
        return [row.pk for row in latest_ended(viewer, words, searched=60)]

    assert matching("needle") == ["e3"]
    assert matching("e100") == matching("workspace-e100") == matching("needle", "e100") == ["e100"]
    assert matching("hay", "e100") == []


@pytest.mark.parametrize(
    ("text", "name", "rank"),
    [
        ("tra", "Train the model", 0),
        ("model tra", "Train the model", 0),
        ("TRAIN", "train", 0),
        ("7f4", "default-7f4k2", 0),
        ("b", "a_b", 0),
        ("rain", "Train the model", 1),
        ("ain.", "Train the model", None),
        ("(x", "f(x)", 1),
        ("", "anything", 0),
    ],
)
def test_begin_of_a_word_ranks_before_any_other_place(text: str, name: str, rank: int | None) -> None:
    assert PaletteQuery(text).rank(name) == rank


def best(text: str, names: list[str], **limits: object) -> list[str]:
    query = PaletteQuery(text)
    group = query.group("", names, lambda name: name, PaletteItem, **limits)  # type: ignore[arg-type]
    return [item.title for item in group.items]


def test_equal_ranks_keep_their_order_unless_another_is_given() -> None:
    names = ["xa", "ab 2", "ab 1", "b"]
    assert best("a", names) == ["ab 2", "ab 1", "xa"]
    assert best("a", names, order=str) == ["ab 1", "ab 2", "xa"]


def test_worst_matches_are_left_out_when_too_many() -> None:
    names = [f"x{number}a" for number in range(20)] + ["a last"]
    assert best("a", names) == ["a last", *names[:7]]
    assert best("a", names, most=2) == ["a last", "x0a"]


def test_groups_are_ordered_by_match_and_empty_ones_dropped() -> None:
    item = PaletteItem("x")
    groups = [PaletteGroup("anywhere", [item], 1), PaletteGroup("empty", [], 0), PaletteGroup("begins", [item], 0)]
    assert [group.title for group in in_order(groups)] == ["begins", "anywhere"]


@pytest.mark.parametrize(
    ("count", "sentence"), [(0, "Nothing found for “x”."), (1, "1 result"), (2, "2 results"), (12, "12 results")]
)
def test_sentence_says_how_many_were_found(count: int, sentence: str) -> None:
    groups = [PaletteGroup("Names", [PaletteItem("x")] * count), PaletteGroup("Others", [])]
    assert results_sentence("x", groups) == sentence
