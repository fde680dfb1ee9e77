"""What the proxy counts of what it answered."""

from typing import Any

import pytest

from dashboard.proxy.answers import explain
from dashboard.proxy.measured import MeasuredProxy, answered_by_program
from grid.observability.telemetry import OTHER, REGISTRY


def counted(code: str) -> float:
    return REGISTRY.get_sample_value("compute_grid_proxy_request_seconds_count", {"code": code}) or 0.0


async def nothing() -> Any:
    raise AssertionError("nothing is read")


async def ignored(message: Any) -> None:
    pass


async def answer(status: int, *, by_program: bool = False, type: str = "http") -> None:
    async def application(scope: Any, receive: Any, send: Any) -> None:
        if by_program:
            answered_by_program(scope)
        if type == "http":
            await send({"type": "http.response.start", "status": status, "headers": []})
            await send({"type": "http.response.body", "body": b""})
        else:
            await explain(scope, send, status, "No.")  # type: ignore[arg-type]

    await MeasuredProxy(application)({"type": type, "path": "/"}, nothing, ignored)


@pytest.mark.parametrize(
    ("status", "options", "code"),
    [
        (200, {"by_program": True}, "200"),
        (502, {}, "502"),
        (503, {"by_program": True}, "500"),  # the program is there and has an error of its own
        (599, {"by_program": True}, OTHER),
        (502, {"type": "websocket"}, "502"),  # the browser sees 403 for any refusal
    ],
)
async def test_answer_is_counted_once_by_code_and_origin(status: int, options: dict[str, Any], code: str) -> None:
    before = counted(code)
    await answer(status, **options)
    assert counted(code) == before + 1
