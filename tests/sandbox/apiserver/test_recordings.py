"""The embedded API server answers as a real one did, request by request."""

import ssl
from collections.abc import Mapping
from pathlib import Path

import aiohttp
import pytest

from grid.sandbox.apiserver import ApiServer, Tokens
from grid.sandbox.apiserver.streaming import StreamSettings
from tests.sandbox.apiserver.replay import Direction, Exchange, Replay, exchanges
from tests.sandbox.apiserver.stage import BEFORE, DURING, change_fromyaml

pytestmark = pytest.mark.slow

_NO_STATEFUL_SETS = "StatefulSet is not served"
_NO_RESIZE = "a running container's resources cannot be changed"
_NO_EPHEMERAL = "there are no ephemeral containers"
_NO_RBAC = "there is no authorization: who is known may do everything"
KNOWN_DIFFERENCES: Mapping[str, str] = {
    "254 statefulset": _NO_STATEFUL_SETS,
    "255 statefulset-forbidden-change": _NO_STATEFUL_SETS,
    "292 resize-sub": _NO_RESIZE,
    "293 ephemeral-containers": _NO_EPHEMERAL,
    "315 negative-grace": f"{_NO_EPHEMERAL}, so the pod has one generation less",
    "120 anonymous": "nobody is anonymous: without a token the answer is 401",
    "118 self-subject-access-review": _NO_RBAC,
    "119 self-subject-rules-review": _NO_RBAC,
}


def is_known(exchange: Exchange) -> bool:
    return exchange.label in KNOWN_DIFFERENCES or exchange.needs_authorization


@pytest.mark.timeout(240)
async def test_every_recorded_exchange_is_answered_alike(tmp_path: Path) -> None:
    """But for the differences in the table, each of which must still be one."""
    tokens = Tokens.load_or_make(tmp_path / "tokens.json")
    server = ApiServer(tmp_path, tokens, streams=StreamSettings(bookmark_seconds=1.0))
    url = await server.start()

    async def compact(replay: Replay) -> None:
        await change_fromyaml(replay)
        server.store.compact(everything=True)

    async def forget(replay: Replay) -> None:
        server.store.forget("configmaps", int(replay.answers["watch-base"]["metadata"]["resourceVersion"]))

    clean_up = server.janitor.work

    def resting(name: str) -> Direction:
        """What is there right after a deletion is asked for before the janitor has come, however slow this machine is."""

        async def rest(replay: Replay) -> None:
            if name in BEFORE:
                await BEFORE[name](replay)
            server.janitor.work = lambda: None  # type: ignore[method-assign]

        return rest

    async def go_on(replay: Replay) -> None:
        server.janitor.work = clean_up  # type: ignore[method-assign]
        server.janitor.work()

    before = {
        **BEFORE,
        "continue-expired": compact,
        "watch-expired": forget,
        "fg-delete": resting("fg-delete"),
        "fg-later": go_on,
        "orph-delete": resting("orph-delete"),
        "orph-later": go_on,
    }
    trust = ssl.create_default_context(cadata=server.certificate.authority)
    problems: dict[str, str] = {}
    recorded = exchanges()
    try:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust)) as session:
            replay = Replay(session, url, server.tokens.by_name, before, DURING)
            for exchange in recorded:
                if exchange.needs_authorization:
                    continue  # everybody may do it here, which would change what follows
                problem = await replay.run(exchange, patient=not is_known(exchange))
                if problem:
                    problems[exchange.label] = problem
    finally:
        await server.stop()
    assert {label: problem for label, problem in problems.items() if label not in KNOWN_DIFFERENCES} == {}
    assert sorted(problems) == sorted(KNOWN_DIFFERENCES), "what agrees now belongs out of the table"
    assert len(recorded) - sum(is_known(exchange) for exchange in recorded) == 361
