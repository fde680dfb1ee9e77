"""A cluster's page stays below its prefix: what its redirects, its cookies and its scripts may reach."""

from typing import Any

import pytest
from hypothesis import given, strategies as st

from dashboard.proxy.headers import to_browser, to_upstream
from dashboard.proxy.path_prefix import NO_PREFIX, PathPrefix

STRIPPED = PathPrefix("/w/abc", strips=True, origin="http://w.test:8001", netloc="127.0.0.9:8265")
KEPT = PathPrefix("/w/abc", strips=False, origin="http://w.test:8001", netloc="127.0.0.9:8787")
OUT = ("/w/victim/", "../../victim/", "//w.test:8001/w/victim/", "http://w.test:8001/w/victim/")


@pytest.mark.parametrize(
    ("target", "asked"),
    [("/w/abc/", "/"), ("/w/abc/api/jobs?a=%2F", "/api/jobs?a=%2F"), ("/w/abc//x", "//x"), ("/w/abc/?x=1", "/?x=1")],
)
def test_root_program_is_requested_without_the_prefix(target: str, asked: str) -> None:
    assert STRIPPED.asked(target) == asked
    assert KEPT.asked(target) == target


@pytest.mark.parametrize(
    ("location", "asked", "seen"),
    [
        ("/jobs/", "/", "/w/abc/jobs/"),
        ("jobs/?a=1#x", "/api/", "/w/abc/api/jobs/?a=1#x"),
        ("http://127.0.0.9:8265/app/", "/", "/w/abc/app/"),
        ("http://w.test:8001/app/", "/", "/w/abc/app/"),
        ("http://W.TEST:8001", "/x", "/w/abc/"),
        ("/w/abc/app", "/", "/w/abc/app"),
        ("/w/abcd/app", "/", "/w/abc/w/abcd/app"),
    ],
)
def test_redirects_stay_below_the_prefix_that_was_taken_off(location: str, asked: str, seen: str) -> None:
    assert STRIPPED.location(location, asked=asked) == seen


def test_a_redirect_that_repeats_the_prefix_means_it_once() -> None:
    """Dask's scheduler answers so at the root of its page."""
    assert KEPT.location("w/abc/status", asked="/w/abc/") == "/w/abc/status"


@pytest.mark.parametrize("path_prefix", [STRIPPED, KEPT])
@pytest.mark.parametrize("location", OUT)
def test_no_redirect_leads_to_another_execution(path_prefix: PathPrefix, location: str) -> None:
    rewritten = path_prefix.location(location, asked=path_prefix.asked("/w/abc/x"))
    assert rewritten is None or rewritten.startswith("/w/abc/")


@pytest.mark.parametrize(
    "location",
    ["\\\\w.test:8001/w/victim/", "/\\w.test:8001/w/victim/", "http:/w/victim/", "http:w/victim", "///w.test:8001/w/victim/",
     "/w/abc/%2E%2e/victim/", "/\t/w.test:8001/", "javascript:alert(1)", "http://[w/", "HTTP:\\\\w.test:8001\\w"],
)  # fmt: skip
def test_ambiguous_location_is_dropped(location: str) -> None:
    assert STRIPPED.location(location, asked="/") is None


def test_location_of_another_host_is_dropped() -> None:
    assert STRIPPED.location("https://elsewhere.test/", asked="/") is None
    assert STRIPPED.location("http://127.1:8001/w/victim/", asked="/") is None


@given(st.text(max_size=40), st.sampled_from([STRIPPED, KEPT]))
def test_relative_location_stays_below_the_prefix(location: str, path_prefix: PathPrefix) -> None:
    rewritten = path_prefix.location(location, asked=path_prefix.asked("/w/abc/a/b"))
    assert rewritten is None or rewritten == "/w/abc" or rewritten.startswith("/w/abc/")


def test_a_workspace_may_redirect_as_it_likes() -> None:
    assert NO_PREFIX.location("/w/other/", asked="/w/abc/") == "/w/other/"
    assert NO_PREFIX.asked("/w/abc/lab") == "/w/abc/lab"


@pytest.mark.parametrize(
    ("location", "corrected"),
    [
        ("http://10.0.0.7:8888/lab?x=1", "https://abc.w.test/lab?x=1"),
        ("https://abc.w.test/lab", "https://abc.w.test/lab"),
        ("http://10.0.0.7:8888//evil.test/", "https://abc.w.test//evil.test/"),
        ("/lab", "/lab"),
        ("https://login.example.com/?x", "https://login.example.com/?x"),
        ("http://[", "http://["),
    ],
)
def test_pod_address_in_location_is_corrected_on_own_origin(location: str, corrected: str) -> None:
    path_prefix = PathPrefix("", False, "https://abc.w.test", "10.0.0.7:8888")
    assert path_prefix.location(location, asked="/") == corrected


def test_program_gets_only_the_true_removed_prefix() -> None:
    given = [("x-forwarded-prefix", "/evil"), ("x-forwarded-context", "/evil")]
    known: dict[str, Any] = {"token": "t", "scheme": "http", "client": "", "for_front": []}
    sent = to_upstream(given, **known, path_prefix=STRIPPED)
    assert [value for name, value in sent if name in ("x-forwarded-prefix", "x-forwarded-context")] == ["/w/abc"] * 2
    assert "x-forwarded-prefix" not in dict(to_upstream(given, **known, path_prefix=KEPT))


def test_a_cookie_of_a_cluster_stays_with_it() -> None:
    passed = to_browser([("Set-Cookie", "JSESSIONID=1; Path=/; HttpOnly")], path_prefix=STRIPPED)
    assert passed[0] == ("set-cookie", "JSESSIONID=1; HttpOnly; Path=/w/abc/")


def test_shared_origin_policy_restricts_reach_of_cluster_page() -> None:
    policy = dict(to_browser([], path_prefix=STRIPPED))["content-security-policy"]
    assert "connect-src http://w.test:8001/w/abc/ ws://w.test:8001/w/abc/;" in policy
    assert "allow-popups" not in policy
    assert dict(to_browser([], path_prefix=NO_PREFIX))["content-security-policy"] == "frame-ancestors 'self'"
