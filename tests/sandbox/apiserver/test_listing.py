"""Lists in pages and other forms, beside what `tests/contract/test_listing.py` promises of any server."""

from typing import Any

from tests.sandbox.apiserver.conftest import Api

MAPS = "/api/v1/namespaces/kube-public/configmaps"


async def fill(api: Api, *names: str) -> None:
    for name in names:
        await api.make(MAPS, {"metadata": {"name": name}})


def names(body: Any) -> list[str]:
    return [each["metadata"]["name"] for each in body["items"] if each["metadata"]["name"] != "kube-root-ca.crt"]


async def test_a_token_of_another_namespace_shows_nothing_of_it(api: Api) -> None:
    await fill(api, "a", "b")
    token = (await api.ask("GET", f"{MAPS}?limit=1")).body["metadata"]["continue"]
    other = (await api.ask("GET", f"/api/v1/namespaces/kube-system/configmaps?continue={token}")).body
    assert all(each["metadata"]["namespace"] == "kube-system" for each in other["items"])


async def test_lists_across_namespaces_are_paged_too(api: Api) -> None:
    await fill(api, "a", "b")
    seen: list[str] = []
    query = "?limit=2"
    while query:
        page = (await api.ask("GET", f"/api/v1/configmaps{query}")).body
        seen += [f"{each['metadata']['namespace']}/{each['metadata']['name']}" for each in page["items"]]
        token = page["metadata"].get("continue")
        query = f"?limit=2&continue={token}" if token else ""
    assert seen == sorted(set(seen))
    assert {"kube-public/a", "kube-public/b", "default/kube-root-ca.crt"} <= set(seen)
