"""What a package index knows against revisions' packages: read, bounded, asked of a small server that answers as PyPI does, and kept."""

import asyncio
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any, ParamSpec, TypeVar

import msgspec
import pytest
from aiohttp import web
from asgiref.sync import sync_to_async

from dashboard.environments.viewmodel import package_words
from grid.database.trouble import TroubleLog
from grid.environments import revisions
from grid.environments.packagechecks import AWAY_SECONDS, PAUSE_SECONDS, PackageChecks, next_due
from grid.environments.packageindex import (
    NotChecked,
    Package,
    PackageIndex,
    PackageMark,
    PackageReport,
    mark_of,
    packages_of,
    why_yanked,
)
from grid.environments.revisions import BuildProgress
from grid.models import Environment, EnvironmentRevision
from tests.support.http_server import serving
from tests.support.shop import NOW

P = ParamSpec("P")
T = TypeVar("T")

JINJA = Package("jinja2", "2.10")
OLD = {
    "id": "PYSEC-2019-217",
    "link": "https://osv.dev/vulnerability/PYSEC-2019-217",
    "fixed_in": ["2.10.1"],
    "withdrawn": None,
}


def release(
    *vulnerabilities: dict[str, Any], yanked: tuple[bool, ...] = (False, False), why: str | None = None
) -> bytes:
    """As https://pypi.org/pypi/NAME/VERSION/json answers, with what is not read as well."""
    urls = [{"filename": "x.whl", "yanked": is_yanked, "yanked_reason": why} for is_yanked in yanked]
    about = {"info": {"name": "x", "yanked": all(yanked)}, "last_serial": 1, "urls": urls}
    return json.dumps(
        {**about, "vulnerabilities": [{"aliases": [], "details": "d", **known} for known in vulnerabilities]}
    ).encode()


@pytest.mark.parametrize(
    ("log", "requirements", "packages"),
    [
        ("#7 9.1 Successfully installed Jinja2-2.10 typing_extensions-4.1 a-b-1.0rc1", ["jinja2"],
         ["a-b 1.0rc1", "jinja2 2.10", "typing-extensions 4.1"]),
        ("Successfully installed a-1\nx\nSuccessfully installed b-2", [], ["a 1", "b 2"]),
        ("", ["Jinja2==2.10", "rich>13", "polars==1.*", "b[c]==2; python_version > '3'"], ["b 2", "jinja2 2.10"]),
        ("Successfully installed ../../etc-1 <b>-2 -3", ["x"], []),
    ],
)  # fmt: skip
def test_installed_packages_come_from_pip_log_or_exact_requirements(
    log: str, requirements: list[str], packages: list[str]
) -> None:
    assert [f"{package.name} {package.version}" for package in packages_of(requirements, log)] == packages


def test_release_is_marked_as_vulnerable_or_yanked() -> None:
    assert mark_of(JINJA, release()) is None
    assert mark_of(JINJA, b"{}") is None
    assert mark_of(JINJA, release({**OLD, "withdrawn": "2020-01-01"}, yanked=(True, False))) is None
    mark = mark_of(JINJA, release(OLD, yanked=(True, True), why="Broken"))
    assert mark is not None
    assert [(advisory.id, advisory.fixed_in) for advisory in mark.advisories] == [("PYSEC-2019-217", ("2.10.1",))]
    assert mark.why_yanked == "Broken"
    unexplained = mark_of(JINJA, release(yanked=(True,)))
    assert unexplained is not None
    assert unexplained.why_yanked == ""


def test_a_hostile_answer_is_kept_within_bounds() -> None:
    bad = {**OLD, "link": "javascript:alert(1)", "fixed_in": ["<script>", "2"]}
    mark = mark_of(JINJA, release(bad, {**OLD, "id": "x y"}, *[OLD] * 50, yanked=(True,), why="w" * 9999))
    assert mark is not None
    assert mark.advisories[0].link == OLD["link"]
    assert mark.advisories[0].fixed_in == ("2",)
    assert (len(mark.advisories), len(mark.why_yanked or "")) == (20, 300)
    nul = mark_of(JINJA, release({**OLD, "link": "https://x\0"}, yanked=(True,), why="Not\0 for\n\x1b[2Juse"))
    assert nul is not None
    assert (nul.why_yanked, nul.advisories[0].link) == ("Not for [2Juse", OLD["link"])
    no_text, deep = b'{"vulnerabilities":[{"id":"\xff"}]}', b'{"x":' + b"[" * 100_000
    for answer in (b"<html>", b"[]", b'{"urls": 3}', no_text, deep):
        with pytest.raises(NotChecked, match="not PyPI's JSON"):
            mark_of(JINJA, answer)


class Pypi:
    """Answers for releases as PyPI does."""

    def __init__(self, **releases: bytes) -> None:
        self.releases = releases
        self.statuses: dict[str, int] = {}
        self.pages: dict[str, tuple[str, bytes]] = {}
        self.status = 0
        self.silent = False

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        if self.silent:
            await asyncio.Event().wait()
        if request.path in self.pages:
            kind, body = self.pages[request.path]
            return web.Response(body=body, content_type=kind)
        name = request.path.split("/")[2]
        if name in self.statuses:
            return web.Response(status=self.statuses[name])
        if self.status or name not in self.releases:
            return web.Response(status=self.status or 404, text='{"message": "Not Found"}')
        return web.Response(body=self.releases[name], content_type="application/json")


async def test_each_release_is_queried_whatever_happens_to_others() -> None:
    pypi = Pypi(jinja2=release(OLD), rich=b"<html>")
    pypi.statuses = {"a": 403, "b": 500}
    ours, odd = Package("ours", "1"), (Package("a", "1"), Package("b", "1"), Package("rich", "13!1.0+cpu"))
    async with serving(pypi) as server:
        report = await PackageIndex(f"{server.url}/simple/").report([*odd, JINJA, ours], NOW)
        with pytest.raises(NotChecked, match="answered with status 403"):
            await PackageIndex(server.url).report(odd[:1], NOW)
    assert {"/pypi/jinja2/2.10/json", "/pypi/rich/13!1.0+cpu/json"} < {request.path for request in server.seen}
    assert (report.index, report.checked, report.unanswered) == ("127.0.0.1", 1, odd)
    assert report.unknown == (*odd, ours)
    assert [mark.package for mark in report.marks] == [JINJA]


SIMPLE_JSON = json.dumps(
    {
        "meta": {"api-version": "1.1"},
        "files": [
            {"filename": "jinja2-2.10-py3-none-any.whl", "yanked": "Broken"},
            {"filename": "jinja2-2.10.tar.gz", "yanked": True},
            {"filename": "jinja2-3.0.tar.gz", "yanked": False},
            {"filename": "odd.exe"},
        ],
    }
).encode()


@pytest.mark.parametrize(("version", "why"), [("2.10", "Broken"), ("3.0.0", None), ("4", False), ("no version", False)])
def test_a_simple_index_says_what_is_yanked(version: str, why: str | bool | None) -> None:
    assert why_yanked(SIMPLE_JSON, version) == why


async def test_index_without_json_api_is_queried_for_yanked_releases() -> None:
    pypi = Pypi()
    pypi.pages = {
        "/root/simple/jinja2/": ("application/vnd.pypi.simple.v1+json", SIMPLE_JSON),
        "/root/simple/rich/": ("text/html", b'<a href="rich-2.0.tar.gz">rich-2.0.tar.gz</a>'),
    }
    async with serving(pypi) as server:
        packages = [JINJA, Package("ours", "1"), Package("rich", "2.0")]
        report = await PackageIndex(f"{server.url}/root/simple/").report(packages, NOW)
        with pytest.raises(NotChecked, match="no page of a package index in JSON"):
            await PackageIndex(f"{server.url}/root/simple/").report(packages[2:], NOW)
    assert report.only_yanked
    assert report.marks == (PackageMark(JINJA, why_yanked="Broken"),)
    assert (report.checked, report.unknown, report.unanswered) == (1, tuple(packages[1:]), (packages[2],))


async def test_why_an_index_cannot_be_asked_is_a_sentence() -> None:
    pypi = Pypi()
    async with serving(pypi) as server:
        index = PackageIndex(f"{server.url}/simple")
        with pytest.raises(NotChecked, match="knows none of its packages, or is no package index"):
            await index.report([JINJA], NOW)
        pypi.status = 503
        with pytest.raises(NotChecked, match="answered with status 503"):
            await index.report([JINJA, Package("b", "1")], NOW)
        pypi.silent = True
        with pytest.raises(NotChecked, match="did not answer within 0 seconds"):
            await PackageIndex(server.url, seconds=0.2).report([JINJA], NOW)
    with pytest.raises(NotChecked, match="cannot be reached"):
        await index.report([JINJA], NOW)


def build_one() -> EnvironmentRevision:
    Environment.objects.create(id="lab", name="Lab", image="lab:1", port=8888)
    made = revisions.make_built("lab", 1, "jinja2", note="", by="admin", now=NOW)
    log = "Successfully installed Jinja2-2.10"
    revisions.record_progress(made.pk, BuildProgress("a", "ready", log=log), now=NOW)
    return made


@pytest.fixture
def built(db: None) -> EnvironmentRevision:
    return build_one()


@pytest.mark.parametrize(
    ("hours", "unchecked", "is_due"),
    [(None, "", True), (0.5, "", False), (23, "", False), (25, "", True), (0.5, "Away.", False), (2, "Away.", True)],
)
def test_ready_revision_is_due_daily_or_hourly_after_failure(
    built: EnvironmentRevision, hours: float | None, unchecked: str, is_due: bool
) -> None:
    asked = None if hours is None else NOW - timedelta(hours=hours)
    EnvironmentRevision.objects.filter(pk=built.pk).update(packages_asked_at=asked, packages_unchecked=unchecked)
    assert next_due(NOW) == ((built.pk, (JINJA,)) if is_due else None)


async def directly(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    return await sync_to_async(work)(*args, **kwargs)


@pytest.mark.django_db(transaction=True)
async def test_last_answer_is_kept_while_index_is_away() -> None:
    revision = await sync_to_async(build_one)()
    pypi, hour = Pypi(jinja2=release(OLD)), [NOW]
    async with serving(pypi) as server:
        checks = PackageChecks(directly, lambda: hour[0], TroubleLog(lambda: 0.0), PackageIndex(server.url))
        assert await checks.run_once() == PAUSE_SECONDS
        assert await checks.run_once() is None
        pypi.status, hour[0] = 500, NOW + timedelta(days=2)
        assert await checks.run_once() == AWAY_SECONDS
    await sync_to_async(revision.refresh_from_db)()
    assert revision.packages_report is not None
    assert revision.packages_report["marks"][0]["package"]["name"] == "jinja2"
    assert revision.packages_unchecked == "127.0.0.1 answered with status 500."


@pytest.mark.parametrize(
    ("only_yanked", "sentence"),
    [
        (False, "Nothing is known against 2 packages, says pypi.org"),
        (True, "Of 2 packages none is yanked, says pypi.org"),
    ],
)
def test_package_words_say_what_was_looked_at(only_yanked: bool, sentence: str) -> None:
    report = PackageReport(NOW, "pypi.org", 2, only_yanked=only_yanked)
    words = package_words(msgspec.to_builtins(report), "", None).sentence
    assert words.startswith(sentence)
    assert ("Nothing is known" in words) != ("Only whether they are yanked was checked" in words)
