"""Which origin is whose, and which execution a request is for."""

import pytest

from grid.core.origins import Door, Origins

APART, BY_PATH = Origins("https://ws.example.com"), Origins("http://localhost:8001", by_path=True)


def test_executions_have_own_origins_unless_configured_otherwise() -> None:
    assert APART.origin("abc") == "https://abc.ws.example.com"
    assert APART.address("abc") == "https://abc.ws.example.com/"
    assert BY_PATH.origin("abc") == "http://localhost:8001"
    assert BY_PATH.address("abc") == "http://localhost:8001/w/abc/"


@pytest.mark.parametrize(
    ("host", "door"),
    [
        ("abc.ws.example.com", Door("abc", "", "/w/x/y")),
        ("ABC.ws.Example.com", Door("abc", "", "/w/x/y")),
        ("ws.example.com", None),
        (".ws.example.com", None),
        ("a.b.ws.example.com", None),
        ("abc.ws.example.com:8443", None),
        ("abc.evil.com", None),
        ("", None),
    ],
)
def test_the_host_alone_says_which_execution(host: str, door: Door | None) -> None:
    assert APART.door(host, "/w/x/y") == door


@pytest.mark.parametrize(
    ("host", "path", "door"),
    [
        ("localhost:8001", "/w/abc/lab", Door("abc", "/w/abc", "/lab")),
        ("localhost:8001", "/w/abc/", Door("abc", "/w/abc", "/")),
        ("localhost:8001", "/w/abc", None),
        ("localhost:8001", "/x/abc/", None),
        ("localhost:8001", "/w/a;b/", None),
        ("127.0.0.1:8001", "/w/abc/", None),
    ],
)
def test_on_one_origin_the_path_says_it(host: str, path: str, door: Door | None) -> None:
    assert BY_PATH.door(host, path) == door


def test_old_path_address_is_recognised_with_separate_origins() -> None:
    assert APART.moved("ws.example.com", "/w/abc/lab") == Door("abc", "/w/abc", "/lab")
    assert APART.moved("abc.ws.example.com", "/w/abc/lab") is None
    assert BY_PATH.moved("localhost:8001", "/w/abc/lab") is None


def test_a_policy_names_all_of_them() -> None:
    assert APART.pattern == "https://*.ws.example.com"
    assert BY_PATH.pattern == "http://localhost:8001"
