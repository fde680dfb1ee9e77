"""The embedded API server answers as a real one did, request by request."""

import ssl
from pathlib import Path

import aiohttp

from grid.sandbox.apiserver import ApiServer, Tokens
from grid.sandbox.apiserver.streaming import StreamSettings
from tests.sandbox.apiserver.replay import Replay, exchanges
from tests.sandbox.apiserver.stage import BEFORE, DURING, change_fromyaml

KNOWN_DIFFERENCES: dict[str, str] = {}


async def test_every_recorded_exchange_is_answered_alike(tmp_path: Path) -> None:
    server = ApiServer(
        tmp_path, Tokens.load_or_make(tmp_path / "tokens.json"), streams=StreamSettings(bookmark_seconds=1.0)
    )
    url = await server.start()

    async def compact(replay: Replay) -> None:
        await change_fromyaml(replay)
        server.store.compact(everything=True)

    async def forget(replay: Replay) -> None:
        server.store.forget("configmaps", int(replay.answers["watch-base"]["metadata"]["resourceVersion"]))

    before = {**BEFORE, "continue-expired": compact, "watch-expired": forget}
    trust = ssl.create_default_context(cadata=server.certificate.authority)
    problems: dict[str, str] = {}
    try:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust)) as session:
            replay = Replay(session, url, server.tokens.by_name, before, DURING)
            for exchange in exchanges():
                problem = await replay.run(exchange)
                if problem:
                    problems[exchange.label] = problem
    finally:
        await server.stop()
    surprising = {label: problem for label, problem in problems.items() if label not in KNOWN_DIFFERENCES}
    assert surprising == {}
    assert sorted(KNOWN_DIFFERENCES) == sorted(problems)
