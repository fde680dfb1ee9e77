"""The embedded API server answers as a real one did, request by request."""

import ssl
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import aiohttp
import pytest

from grid.sandbox.apiserver import ApiServer, Tokens
from grid.sandbox.apiserver.kinds import stored_kinds
from grid.sandbox.apiserver.patches import merge_patch
from grid.sandbox.apiserver.streaming import StreamSettings
from tests.sandbox.apiserver.replay import Exchange, Replay, exchanges
from tests.sandbox.apiserver.stage import BEFORE, DURING

pytestmark = pytest.mark.slow

_CHANGES = 300  # of one object, which the recording's author made before its last exchanges
_NO_STATEFUL_SETS = "StatefulSet is not served"
_NO_RESIZE = "a running container's resources cannot be changed"
_NO_EPHEMERAL = "there are no ephemeral containers"
_NO_RBAC = "there is no authorization: who is known may do everything"
_NO_JSON_PATCH = "JSON patches are not served"
_NO_VIEW = "of a kind one version is served"
KNOWN_DIFFERENCES: Mapping[str, str] = {
    "82 hpa-v1-view": _NO_VIEW,
    "201 watch-legacy-path": "a watch is a parameter of a list, not a path",
    "216 json-patch": _NO_JSON_PATCH,
    "217 json-patch-test-ok": _NO_JSON_PATCH,
    "218 json-patch-test-fails": _NO_JSON_PATCH,
    "219 json-patch-remove-missing": _NO_JSON_PATCH,
    "220 json-patch-bad-op": _NO_JSON_PATCH,
    "221 json-patch-not-a-list": _NO_JSON_PATCH,
    "222 json-patch-escape": _NO_JSON_PATCH,
    "387 event-as-events-v1": _NO_VIEW,
    "388 event-v1-bad": _NO_VIEW,
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


async def test_every_recorded_exchange_is_answered_alike(tmp_path: Path) -> None:
    """But for the differences in the table, each of which must still be one."""
    tokens = Tokens.load_or_make(tmp_path / "tokens.json")
    server = ApiServer(tmp_path, tokens, streams=StreamSettings(bookmark_seconds=0.05))
    url = await server.start()

    async def compact(replay: Replay) -> None:
        """Time passes, and much happens."""
        config_maps = stored_kinds()["configmaps"]
        for number in range(_CHANGES):
            mutation = partial(merge_patch, patch={"data": {"i": str(number)}})
            server.registry.update(config_maps, "shop/fromyaml", mutation)
        server.store.compact(everything=True)

    async def forget(replay: Replay) -> None:
        server.store.forget("configmaps", int(replay.answers["watch-base"]["metadata"]["resourceVersion"]))

    # It cleans up when an answer is not yet the recorded one, so that none comes too late on a slow machine.
    clean_up = server.janitor.work
    server.janitor.work = lambda: None  # type: ignore[method-assign]
    before = {**BEFORE, "continue-expired": compact, "watch-expired": forget}
    trust = ssl.create_default_context(cadata=server.certificate.authority)
    problems: dict[str, str] = {}
    recorded = exchanges()
    try:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust)) as session:
            replay = Replay(session, url, server.tokens.by_name, before, DURING, clean_up)
            for exchange in recorded:
                if exchange.needs_authorization:
                    continue  # everybody may do it here, which would change what follows
                problem = await replay.run(exchange, patient=not is_known(exchange))
                if problem:
                    problems[exchange.label] = problem
                    if exchange.label not in KNOWN_DIFFERENCES:
                        replay.patience = 1.0  # what follows may differ because of this one
    finally:
        await server.stop()
    assert {label: problem for label, problem in problems.items() if label not in KNOWN_DIFFERENCES} == {}
    assert sorted(problems) == sorted(KNOWN_DIFFERENCES), "what agrees now belongs out of the table"
    assert len(recorded) - sum(is_known(exchange) for exchange in recorded) == 350
