"""Nobody gets in without a token, and the secrets stay with their owner."""

import json
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from grid.sandbox.apiserver.identity import CONTEXTS, IDENTITIES, Identity, Tokens
from tests.sandbox.apiserver.conftest import Api

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Bearer wrong", "Basic YTpi", "bearer \x00", "Bearer ä", "Token x"]
)
def test_only_a_known_token_tells_who_somebody_is(header: str, tmp_path: Path) -> None:
    tokens = Tokens.load_or_make(tmp_path / "tokens.json")
    assert tokens.identify(header, NOW) is None
    assert tokens.identify(f"Bearer {tokens.by_name['compute-grid-web']}", NOW) == Identity("compute-grid-web")


def test_tokens_stay_the_same_and_private(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    first = Tokens.load_or_make(path)
    assert Tokens.load_or_make(path).by_name == first.by_name
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert set(first.by_name) == {identity.name for identity in IDENTITIES}
    assert len(set(first.by_name.values())) == len(IDENTITIES)


def test_an_identity_that_was_added_later_gets_a_token(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    path.write_text(json.dumps({"admin": "old"}))
    tokens = Tokens.load_or_make(path)
    assert tokens.by_name["admin"] == "old"
    assert set(tokens.by_name) == {identity.name for identity in IDENTITIES}


def test_a_token_for_a_while_ends(tmp_path: Path) -> None:
    tokens = Tokens.load_or_make(tmp_path / "tokens.json")
    tokens.add("short", Identity("guest"), NOW + timedelta(seconds=10))
    assert tokens.identify("Bearer short", NOW) == Identity("guest")
    assert tokens.identify("Bearer short", NOW + timedelta(seconds=10)) is None


async def test_only_health_and_version_need_no_token(api: Api) -> None:
    for path in ("/api", "/apis", "/openapi/v3", "/api/v1/secrets", "/nowhere", "/apis/metrics.k8s.io"):
        answer = await api.ask("GET", path, Authorization="")
        assert (answer.status, answer.body["reason"]) == (401, "Unauthorized"), path
    for path in ("/version", "/healthz", "/livez", "/readyz"):
        assert (await api.ask("GET", path, Authorization="")).status == 200, path


async def test_the_kubeconfig_has_a_context_for_each_program(api: Api) -> None:
    config = yaml.safe_load(api.server.kubeconfig())
    assert config["current-context"] == "admin"
    assert {each["name"]: each["context"]["user"] for each in config["contexts"]} == dict(CONTEXTS)
    assert config["clusters"][0]["cluster"]["server"] == api.url


async def test_a_service_account_token_works_until_it_expires(api: Api) -> None:
    asked = {"spec": {"expirationSeconds": 600}}
    made = await api.make("/api/v1/namespaces/default/serviceaccounts/default/token", asked)
    bearer = f"Bearer {made['status']['token']}"
    review = await api.ask("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, Authorization=bearer)
    assert review.body["status"]["userInfo"]["username"] == "system:serviceaccount:default:default"
    api.clock.advance(601)
    assert (await api.ask("GET", "/api", Authorization=bearer)).status == 401


async def test_a_body_that_is_too_large_is_refused(api: Api) -> None:
    answer = await api.ask("POST", "/api/v1/namespaces/default/configmaps", "x" * (4 * 1024 * 1024))
    assert (answer.status, answer.body["reason"]) == (413, "RequestEntityTooLarge")


async def test_strange_paths_are_answered_and_nothing_breaks(api: Api) -> None:
    for path in ("/api/v1/namespaces/..%2f..%2fetc/pods", "/api/v1/pods/%00", "/api//v1///pods/", "/%2e%2e/x"):
        assert (await api.ask("GET", path)).status in (200, 400, 404), path
