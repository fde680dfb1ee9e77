"""One namespace as the tests see it: the verbs of the API by resource name, and waiting for a state with a deadline.

`Space(client, "")` is the cluster itself: cluster-scoped resources, and lists across all namespaces.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Literal

from tests.contract.client import Answer, Client, Object, Watch
from tests.support.waiting import eventually

GROUPS = {
    "": "/api/v1",
    "apiregistration.k8s.io": "/apis/apiregistration.k8s.io/v1",
    "apps": "/apis/apps/v1",
    "autoscaling": "/apis/autoscaling/v2",
    "batch": "/apis/batch/v1",
    "coordination.k8s.io": "/apis/coordination.k8s.io/v1",
    "policy": "/apis/policy/v1",
    "scheduling.k8s.io": "/apis/scheduling.k8s.io/v1",
}
GROUP_OF = {
    "apiservices": "apiregistration.k8s.io",
    "deployments": "apps",
    "horizontalpodautoscalers": "autoscaling",
    "replicasets": "apps",
    "jobs": "batch",
    "leases": "coordination.k8s.io",
    "poddisruptionbudgets": "policy",
    "priorityclasses": "scheduling.k8s.io",
}
PATCH_TYPES = {"merge": "application/merge-patch+json", "strategic": "application/strategic-merge-patch+json"}
PatchKind = Literal["merge", "strategic"]


class Space:
    def __init__(self, client: Client, namespace: str) -> None:
        self.client = client
        self.namespace = namespace

    def path(self, resource: str, name: str = "", sub: str = "") -> str:
        parts = [GROUPS[GROUP_OF.get(resource, "")]]
        if self.namespace:
            parts += ["namespaces", self.namespace]
        return "/".join([*parts, resource, *filter(None, [name, sub])])

    async def get(self, resource: str, name: str, sub: str = "", *, accept: str = "application/json") -> Answer:
        return await self.client.request("GET", self.path(resource, name, sub), accept=accept)

    async def listing(self, resource: str, *, accept: str = "application/json", **query: str) -> Answer:
        return await self.client.request("GET", self.path(resource), accept=accept, query=query)

    async def create(self, resource: str, body: Object, *, name: str = "", sub: str = "", **query: str) -> Answer:
        return await self.client.request("POST", self.path(resource, name, sub), body=body, query=query)

    async def replace(self, resource: str, body: Object, *, sub: str = "", **query: str) -> Answer:
        return await self.client.request(
            "PUT", self.path(resource, body["metadata"]["name"], sub), body=body, query=query
        )

    async def patch(
        self, resource: str, name: str, body: Object, *, kind: PatchKind = "merge", sub: str = "", **query: str
    ) -> Answer:
        path = self.path(resource, name, sub)
        return await self.client.request("PATCH", path, body=body, content_type=PATCH_TYPES[kind], query=query)

    async def delete(self, resource: str, name: str = "", *, options: Object | None = None, **query: str) -> Answer:
        """Deletes one object, or with no name every object that the query selects."""
        body = None if options is None else {"apiVersion": "v1", "kind": "DeleteOptions", **options}
        return await self.client.request("DELETE", self.path(resource, name), body=body, query=query)

    def watch(
        self, resource: str, *, accept: str = "application/json", **query: str
    ) -> AbstractAsyncContextManager[Watch]:
        return self.client.watch(self.path(resource), query, accept)

    async def names(self, resource: str, **query: str) -> list[str]:
        return [item["metadata"]["name"] for item in (await self.listing(resource, **query)).ok()["items"]]

    async def until(self, resource: str, name: str, condition: Callable[[Object], object], why: str) -> Object:
        """Waits until the object exists and satisfies the condition; returns it."""
        answer: Answer = await eventually(
            lambda: self.get(resource, name),
            f"{resource} {name}: {why}",
            holds=lambda answer: answer.status == 200 and condition(answer.body),
        )
        return answer.body

    async def until_gone(self, resource: str, name: str) -> None:
        await eventually(
            lambda: self.get(resource, name),
            f"{resource} {name} should be gone",
            holds=lambda answer: answer.status == 404,
        )

    async def until_items(
        self, resource: str, condition: Callable[[list[Object]], object], why: str, **query: str
    ) -> list[Object]:
        """Waits until the listed objects together satisfy the condition; returns them."""

        async def items() -> list[Object]:
            return (await self.listing(resource, **query)).ok()["items"]  # type: ignore[no-any-return]

        return await eventually(items, f"{resource}: {why}", holds=condition)
