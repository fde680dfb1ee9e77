"""The id of a request: whose it is, where it goes, and lines of log that have it, as text and as JSON."""

import asyncio
import json
import logging
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import RequestFactory

from dashboard.shell.views.failing import failed
from grid.edge.logs import JsonFormatter, LineFormatter
from grid.edge.wrappers import RequestIds
from grid.observability.logcontext import current_request, of_execution, of_request, say_user, subjects

TEXT, JSON = LineFormatter("%(message)s"), JsonFormatter()


def record(message: str, *arguments: object, error: BaseException | None = None) -> logging.LogRecord:
    exc_info = (type(error), error, error.__traceback__) if error else None
    return logging.LogRecord("grid.x", logging.WARNING, "x", 1, message, arguments, exc_info)


async def asked(given: bytes | None = None, *, kind: str = "http", tells: bool = True) -> tuple[str, list[Any]]:
    """The id that the application saw in a task and a thread of its own, and the ids in the answer."""
    seen, sent = [], list[Any]()

    async def application(scope: Any, receive: Any, send: Any) -> None:
        seen.append(await asyncio.create_task(sync_to_async(current_request)()))
        await send({"type": "http.response.start" if kind == "http" else "websocket.accept", "headers": [(b"a", b"b")]})

    async def send(message: Any) -> None:
        sent.extend(value for name, value in message["headers"] if name == b"x-request-id")

    headers = [] if given is None else [(b"x-request-id", given)]
    await RequestIds(application, tells=tells)({"type": kind, "headers": headers}, None, send)  # type: ignore[arg-type]
    return seen[0], sent


@pytest.mark.parametrize("kind", ["http", "websocket"])
async def test_each_request_has_an_id_that_its_answer_says(kind: str) -> None:
    id, answered = await asked(kind=kind)
    assert len(id) == 16
    assert answered == [id.encode()]
    assert (await asked(kind=kind))[0] != id
    assert current_request() == ""


async def test_request_id_is_accepted_only_from_valid_header() -> None:
    assert (await asked(b"0af7651916cd43dd-1"))[0] == "0af7651916cd43dd-1"
    for hostile in (
        b"",
        b"short",
        b"a" * 65,
        b"a b c d e f g",
        b"aaaaaaaa\nlevel=ERROR",
        b"<script>alert</script>",
        b"\xff" * 20,
    ):
        id, _ = await asked(hostile)
        assert len(id) == 16


def test_lines_say_the_request_and_the_execution_once() -> None:
    with of_request("request-1"), of_execution("abc"):
        assert TEXT.format(record("slow user=%s", "alice")) == "slow user=alice request=request-1 execution=abc"
        assert TEXT.format(record("execution=%s failed", "abc")) == "execution=abc failed request=request-1"
        assert subjects() == {"request": "request-1", "execution": "abc"}
    assert TEXT.format(record("slow")) == "slow"


def test_json_has_what_a_line_says_as_fields() -> None:
    with of_request("request-1"):
        line = JSON.format(record("execution=%s not moved on user=%s reason=%s", "abc", "alice", "no such host, yet"))
    fields = json.loads(line)
    assert fields.pop("time").endswith("+00:00")
    assert fields == {
        "level": "WARNING",
        "logger": "grid.x",
        "message": "execution=abc not moved on user=alice reason=no such host, yet",
        "request": "request-1",
        "execution": "abc",
        "user": "alice",
        "reason": "no such host, yet",
    }


async def test_log_lines_name_the_user_whatever_the_message_says() -> None:
    async def log_in() -> None:
        await sync_to_async(say_user)("alice")

    with of_request("request-1"):
        await asyncio.create_task(log_in())
        assert json.loads(JSON.format(record("refused user=mallory")))["user"] == "alice"
        assert TEXT.format(record("slow")) == "slow request=request-1 user=alice"
        assert TEXT.format(record("Not Found: /user=bob")) == "Not Found: /user=bob request=request-1 user=alice"
        with of_request("request-2"):
            assert subjects() == {"request": "request-2"}
    say_user("alice")
    assert subjects() == {}


@pytest.mark.django_db
def test_each_page_that_needs_a_login_says_who_asks(client: Any, django_user_model: Any) -> None:
    client.force_login(django_user_model.objects.create(username="alice"))
    with of_request("request-1"):
        client.get("/account/password/")
        assert subjects() == {"request": "request-1", "user": "alice"}
    with of_request("request-2"):
        client.get("/login/")
        assert subjects() == {"request": "request-2"}


def test_message_cannot_forge_another_request_id() -> None:
    with of_request("request-1"), of_execution("abc"):
        fields = json.loads(JSON.format(record("refused name=a execution=other request=forged")))
    assert (fields["request"], fields["execution"], fields["name"]) == ("request-1", "abc", "a")


def test_json_stays_one_line_and_nobody_forges_its_fields() -> None:
    try:
        raise ValueError("a\nb")
    except ValueError as error:
        line = JSON.format(record("a\n%s level=%s", '{"level": "INFO"}\x1b[31m', "INFO", error=error))
    assert "\n" not in line
    fields = json.loads(line)
    assert fields["level"] == "WARNING"
    assert "\\n" in fields["message"]
    assert "ValueError: a\nb" in fields["exception"]


def test_error_page_shows_the_id_to_quote() -> None:
    with of_request("request-1"):
        assert (
            "tell an operator this number: <code>request-1</code>" in failed(RequestFactory().get("/")).content.decode()
        )
    assert "the time and the address of this page" in failed(RequestFactory().get("/")).content.decode()
