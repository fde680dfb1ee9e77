"""The Content-Security-Policy of every page: no script runs but the tags of our templates, which carry the answer's nonce."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from grid.models import HardwareTier
from tests.conftest import People
from tests.dashboard.browsing import client_of

SCRIPT = re.compile(r"<script\b[^>]*>")
STRICT = {
    "default-src": "'none'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "connect-src": "'self'",
    "font-src": "'self'",
    "form-action": "'self' http://localhost:8001 http://*.localhost:8001",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
}


def addresses(patterns: list[URLPattern | URLResolver], before: str = "/") -> Iterator[str]:
    """Every page of the dashboard, of a thing named `small` where it is one thing's."""
    for pattern in patterns:
        route = str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            if not route:
                yield from addresses(pattern.url_patterns, before)
        else:
            yield before + re.sub(r"<int:\w+>", "1", re.sub(r"<(?:str|id|name):\w+>", "small", route))


ADDRESSES = sorted(path for path in addresses(get_resolver().url_patterns) if not path.startswith("/admin/"))


def policy_of(answer: Any) -> dict[str, str]:
    rules = (rule.strip().partition(" ") for rule in answer["Content-Security-Policy"].split(";"))
    return {name: values for name, _, values in rules}


def nonce_of(answer: Any) -> str:
    """The nonce that the policy allows; "" when it allows no script at all."""
    found = re.fullmatch(r"(?:'nonce-([\w+/=]{20,})')?", policy_of(answer)["script-src"])
    assert found, policy_of(answer)["script-src"]
    return found[1] or ""


def test_the_walk_meets_the_pages_that_there_are() -> None:
    assert {"/", "/login/", "/account/", "/executions/small/", "/tiers/small/", "/logins/", "/healthz"} <= set(
        ADDRESSES
    )


@pytest.mark.usefixtures("two_pools")
@pytest.mark.parametrize("path", [*ADDRESSES, "/nothing-here/"])
def test_every_page_says_the_policy_and_each_of_its_scripts_carries_the_nonce(
    people: People, tier: HardwareTier, path: str
) -> None:
    for client in (client_of(people.admin), client_of(people.stranger), Client()):
        answer = client.get(path)
        assert STRICT.items() <= policy_of(answer).items()
        nonce = nonce_of(answer)
        for tag in [] if answer.streaming else SCRIPT.findall(answer.content.decode()):
            assert nonce
            assert f'nonce="{nonce}"' in tag
            assert " src=" in tag


def test_a_nonce_is_of_one_answer(people: People) -> None:
    client = Client()
    nonces = {nonce_of(client.get("/login/")) for _ in range(5)}
    assert len(nonces) == 5
    assert "" not in nonces


def test_the_admin_may_run_this_hosts_files_and_nothing_else(people: People) -> None:
    admin = client_of(people.admin)
    for path in (
        "/admin/",
        "/admin/grid/user/add/",
        "/admin/auth/group/",
        f"/admin/grid/user/{people.owner.pk}/change/",
    ):
        answer = admin.get(path)
        assert answer.status_code == 200
        assert policy_of(answer) == {**STRICT, "script-src": "'self'"}


def test_no_template_needs_what_the_policy_forbids() -> None:
    inline = re.compile(
        r"<style|\sstyle=|<script(?![^>]*\ssrc=)|<script(?![^>]*\snonce=)|\son[a-z]+=|javascript:", re.I
    )
    found = [str(one) for one in Path("templates").rglob("*.html") if inline.search(one.read_text(encoding="utf-8"))]
    assert found == []
