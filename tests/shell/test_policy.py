"""The Content-Security-Policy where it differs; that every answer to everybody has it is told by `tests/access/test_table.py`."""

import re
from pathlib import Path

from django.test import Client

from tests.access.policy import STRICT, nonce_of, policy_of
from tests.conftest import People
from tests.shell.browsing import client_of


def test_a_nonce_is_of_one_answer(people: People) -> None:
    client = Client()
    nonces = {nonce_of(client.get("/login/")) for _ in range(5)}
    assert len(nonces) == 5
    assert "" not in nonces


def test_admin_may_run_only_files_of_this_host(people: People) -> None:
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
    offending = [
        str(path) for path in Path("templates").rglob("*.html") if inline.search(path.read_text(encoding="utf-8"))
    ]
    assert offending == []
