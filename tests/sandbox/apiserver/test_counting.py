"""Requests are counted by who asked for what."""

from tests.sandbox.apiserver.conftest import MERGE, Api


async def test_requests_are_counted_by_client_verb_and_resource(api: Api) -> None:
    agent = {"User-Agent": 'some"one/1.0 (Linux)'}
    await api.config_map("a")
    path = "/api/v1/namespaces/default/configmaps"
    for _ in range(2):
        await api.ask("GET", f"{path}/a", **agent)
    await api.ask("GET", path, **agent)
    await api.ask("GET", f"{path}?watch=1&timeoutSeconds=1", **agent)
    await api.ask("PATCH", f"{path}/a", {"data": {}}, media=MERGE, **agent)
    await api.ask("DELETE", f"{path}/missing", **agent)
    await api.ask("GET", "/apis/apps/v1/namespaces/default/deployments/x/scale", **agent)
    answer = await api.ask("GET", "/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain")
    mine = [line.partition("} ") for line in answer.body.splitlines() if "some" in line]
    counted = {text.partition(",")[2]: int(count) for text, _, count in mine}
    core = 'group="",resource="configmaps",subresource=""'
    assert counted == {
        f'verb="GET",{core}': 2,
        f'verb="LIST",{core}': 1,
        f'verb="WATCH",{core}': 1,
        f'verb="PATCH",{core}': 1,
        f'verb="DELETE",{core}': 1,
        'verb="GET",group="apps",resource="deployments",subresource="scale"': 1,
    }
    assert 'client="some\\"one"' in answer.body
