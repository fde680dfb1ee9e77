"""What crosses the proxy: never our cookies to user code, never a cookie of ours from it."""

from typing import Any

import pytest

from dashboard.proxy.headers import cookies, decode, to_browser, to_upstream
from dashboard.proxy.path_prefix import NO_PREFIX


def upstream(*headers: tuple[str, str]) -> dict[str, str]:
    given: dict[str, Any] = {"token": "t0ken", "scheme": "http", "client": "127.0.0.9"}
    return dict(to_upstream(list(headers), **given, path_prefix=NO_PREFIX, for_front=[]))


def browser(*headers: tuple[str, str]) -> list[tuple[str, str]]:
    """What passes of these, without what every answer gets."""
    always = to_browser([])
    return [header for header in to_browser(list(headers)) if header not in always]


def test_our_cookies_stay_here_and_user_codes_cookies_pass() -> None:
    sent = upstream(("cookie", "grid_session=a; _xsrf=b; grid_workspace_x=c; theme=d=e"))
    assert sent["cookie"] == "_xsrf=b; theme=d=e"
    assert "cookie" not in upstream(("cookie", "grid_session=a"))


def test_the_pods_token_replaces_what_the_browser_claims() -> None:
    sent = upstream(("authorization", "token mine"), ("x-forwarded-for", "8.8.8.8"))
    assert sent["authorization"] == "token t0ken"
    assert sent["x-forwarded-for"] == "127.0.0.9"


def test_connection_headers_end_here() -> None:
    sent = upstream(("connection", "keep-alive, X-Secret"), ("x-secret", "1"), ("upgrade", "h2c"), ("accept", "*/*"))
    assert "x-secret" not in sent
    assert "upgrade" not in sent
    assert "connection" not in sent
    assert sent["accept"] == "*/*"


def test_user_code_cannot_set_our_cookies_or_a_domain() -> None:
    passed = browser(
        ("Set-Cookie", "grid_session=stolen; Path=/"),
        ("Set-Cookie", "_xsrf=1; Domain=.example.org; Path=/w/x/"),
        ("Content-Type", "text/html"),
    )
    assert passed == [("set-cookie", "_xsrf=1; Path=/w/x/"), ("content-type", "text/html")]


@pytest.mark.parametrize(
    ("given", "passed"),
    [
        ('a="x; Domain=example.org; y"', 'a="x; y"'),
        ("a=1; Partitioned; Priority=High; Secure", "a=1; Partitioned; Priority=High; Secure"),
        ('a={"x": 1}; DOMAIN =example.org', 'a={"x": 1}'),
        ("=grid_workspace=1", ""),
        ("grid_workspace", ""),
        (" Grid_workspace =1", ""),
    ],
)
def test_a_cookie_is_read_as_browsers_read_it(given: str, passed: str) -> None:
    assert browser(("Set-Cookie", given)) == ([("set-cookie", passed)] if passed else [])


def test_utf8_header_reaches_the_program_unchanged() -> None:
    (raw,) = decode([(b"X-Name", "Zoë 日本".encode())])
    assert upstream(raw)["x-name"] == "Zoë 日本"


def test_user_code_says_nothing_that_reaches_beyond_its_workspace() -> None:
    passed = browser(
        ("Clear-Site-Data", '"cookies"'),
        ("Strict-Transport-Security", "max-age=9; includeSubDomains"),
        ("Origin-Agent-Cluster", "?0"),
        ("Cache-Control", "no-store"),
    )
    assert passed == [("cache-control", "no-store")]


@pytest.mark.parametrize("value", ["a\rSet-Cookie: grid_workspace_x=1", "a\n b", "a\x00b"])
def test_header_containing_a_line_end_is_dropped(value: str) -> None:
    assert browser(("X-Split", value), ("X-Whole", "a\tb")) == [("x-whole", "a\tb")]


def test_a_cookie_that_cannot_be_parsed_is_absent() -> None:
    assert cookies([("cookie", "=; ;;a;b=1")]) == {"": "", "b": "1"}
