"""The parts of the API that are not stored objects: scale, binding, eviction, log and token of an object, usage,
and self subject reviews.
"""

import secrets
from collections.abc import Awaitable, Callable
from datetime import timedelta

from aiohttp import web

from grid.sandbox.apiserver import eviction, usage
from grid.sandbox.apiserver.answers import json_answer
from grid.sandbox.apiserver.bodies import negotiate, parse_bool, parse_object
from grid.sandbox.apiserver.changing import is_dry_run, patching
from grid.sandbox.apiserver.identity import Identity, Tokens
from grid.sandbox.apiserver.kinds import ServedKind, stored_kinds
from grid.sandbox.apiserver.kubelets import Kubelets
from grid.sandbox.apiserver.listing import selection_of
from grid.sandbox.apiserver.logs import log_request
from grid.sandbox.apiserver.paths import ResourcePath
from grid.sandbox.apiserver.registry import Mutation, Registry, timestamp
from grid.sandbox.apiserver.scaling import change_scale, scale_of
from grid.sandbox.apiserver.status import Failure, bad_request, not_allowed, not_found, success

Handler = Callable[[web.Request, ResourcePath, Identity], Awaitable[web.StreamResponse]]
_METRICS = "metrics.k8s.io"
_SHORTEST_TOKEN_SECONDS = 600


class Special:
    """Handlers by subresource and by kind; `find` returns None for what is stored as an ordinary object."""

    def __init__(self, registry: Registry, kubelets: Kubelets, tokens: Tokens) -> None:
        self._registry = registry
        self._kubelets = kubelets
        self._tokens = tokens
        self._subresources: dict[str, dict[str, Handler]] = {
            "scale": {"GET": self._get_scale, "PUT": self._put_scale, "PATCH": self._patch_scale},
            "binding": {"POST": self._bind},
            "eviction": {"POST": self._evict},
            "log": {"GET": self._log},
            "exec": {"GET": self._exec, "POST": self._exec},
            "token": {"POST": self._token},
        }
        self._reviews: dict[str, Handler] = {
            "SelfSubjectAccessReview": self._access_review,
            "SelfSubjectRulesReview": self._rules_review,
            "SelfSubjectReview": self._review,
        }

    def find(self, method: str, target: ResourcePath) -> Handler | None:
        if target.subresource is not None and target.subresource.name in self._subresources:
            return self._method(method, self._subresources[target.subresource.name])
        if target.kind.kind in self._reviews:
            return self._method(method, {"POST": self._reviews[target.kind.kind]})
        if target.kind.group == _METRICS:
            return self._method(method, {"GET": self._metrics})
        return None

    @staticmethod
    def _method(method: str, handlers: dict[str, Handler]) -> Handler:
        if method not in handlers:
            raise not_allowed()
        return handlers[method]

    # Scale

    async def _get_scale(self, request: web.Request, target: ResourcePath, identity: Identity) -> web.StreamResponse:
        return json_answer(scale_of(self._registry.read(target.kind, target.key)))

    async def _put_scale(self, request: web.Request, target: ResourcePath, identity: Identity) -> web.StreamResponse:
        given = parse_object(await request.read(), request.headers.get("Content-Type", ""), "Scale")
        dry_run = is_dry_run("UpdateOptions", request.query)
        return self._change_scale(request, target, lambda _: given, dry_run=dry_run)

    async def _patch_scale(self, request: web.Request, target: ResourcePath, identity: Identity) -> web.StreamResponse:
        mutation = patching(await request.read(), request.headers.get("Content-Type", ""), "Scale")
        dry_run = is_dry_run("PatchOptions", request.query)
        return self._change_scale(request, target, mutation, dry_run=dry_run)

    def _change_scale(
        self, request: web.Request, target: ResourcePath, mutation: Mutation, *, dry_run: bool
    ) -> web.StreamResponse:
        return json_answer(change_scale(self._registry, target.kind, target.key, mutation, dry_run=dry_run))

    # Pods

    async def _bind(self, request: web.Request, target: ResourcePath, identity: Identity) -> web.StreamResponse:
        given = parse_object(await request.read(), request.headers.get("Content-Type", ""), "Binding")
        eviction.bind(self._registry, target.key, given)
        return json_answer(success(201), 201)

    async def _evict(self, request: web.Request, target: ResourcePath, identity: Identity) -> web.StreamResponse:
        given = parse_object(await request.read(), request.headers.get("Content-Type", ""), "Eviction")
        eviction.evict(self._registry, target.key, given, request.query)
        return json_answer(success(201), 201)

    async def _log(self, request: web.Request, target: ResourcePath, identity: Identity) -> web.StreamResponse:
        wanted = log_request(self._registry.read(target.kind, target.key).obj, request.query)
        if not wanted.node:
            return web.Response(status=204)
        source = await self._kubelets.open_log(wanted.node, wanted.path, wanted.query, follow=wanted.follow)
        async with source:
            response = web.StreamResponse(headers={"Content-Type": "text/plain"})
            await response.prepare(request)
            async for chunk in source.content.iter_any():
                await response.write(chunk)
        return response

    async def _exec(self, request: web.Request, target: ResourcePath, identity: Identity) -> web.StreamResponse:
        pod = self._registry.read(target.kind, target.key).obj
        node = pod["spec"].get("nodeName")
        if not node:
            raise bad_request(f"pod {target.name} does not have a host assigned")
        self._kubelets.url_of(node)
        raise Failure(501, "NotImplemented", "the embedded cluster cannot run commands in containers; use kubectl logs")

    async def _token(self, request: web.Request, target: ResourcePath, identity: Identity) -> web.StreamResponse:
        """Issue a token for a service account; it is forgotten when the server stops."""
        self._registry.read(target.kind, target.key)
        given = parse_object(await request.read(), request.headers.get("Content-Type", ""), "TokenRequest")
        spec = given.get("spec") or {}
        seconds = max(int(spec.get("expirationSeconds") or 3600), _SHORTEST_TOKEN_SECONDS)
        token = secrets.token_urlsafe(32)
        name = f"system:serviceaccount:{target.namespace}:{target.name}"
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{target.namespace}")
        expires = self._registry.clock() + timedelta(seconds=seconds)
        self._tokens.add(token, Identity(name, groups), expires)
        status = {"token": token, "expirationTimestamp": timestamp(expires)}
        body = {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "metadata": {"name": target.name}}
        return json_answer({**body, "spec": {**spec, "expirationSeconds": seconds}, "status": status}, 201)

    # Usage

    async def _metrics(self, request: web.Request, target: ResourcePath, identity: Identity) -> web.StreamResponse:
        negotiate(request.headers.get("Accept", ""))
        kind = target.kind
        if parse_bool(request.query, "watch"):
            problem = f'watch is not supported on resources of kind "{kind.plural}.{_METRICS}"'
            raise Failure(405, "MethodNotAllowed", problem, {"group": _METRICS, "kind": kind.plural})
        measured = stored_kinds()["nodes" if kind.kind == "NodeMetrics" else "pods"]
        selection = selection_of(measured, request.query)
        stats = await self._kubelets.stats()
        records = [
            record
            for record in self._registry.store.records(measured.resource, prefix=target.prefix)
            if (not target.name or record.key == target.key) and (selection is None or selection.takes(record))
        ]
        if target.name and not records:
            raise _unmeasurable(measured, target)
        make = usage.node_metrics if kind.kind == "NodeMetrics" else usage.pod_metrics
        items = list(make(records, stats, self._registry.clock()))
        if not target.name:
            head = {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": {}}
            return json_answer({**head, "items": items})
        if not items:
            raise _not_measured(kind, target.key)
        return json_answer(items[0])

    # Self subject reviews

    async def _access_review(
        self, request: web.Request, target: ResourcePath, identity: Identity
    ) -> web.StreamResponse:
        given = parse_object(await request.read(), request.headers.get("Content-Type", ""), target.kind.kind)
        head = {"kind": target.kind.kind, "apiVersion": target.kind.api_version, "metadata": {}}
        return json_answer({**head, "spec": given.get("spec") or {}, "status": {"allowed": True}}, 201)

    async def _rules_review(self, request: web.Request, target: ResourcePath, identity: Identity) -> web.StreamResponse:
        status = {
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": False,
        }
        head = {"kind": target.kind.kind, "apiVersion": target.kind.api_version, "metadata": {}}
        return json_answer({**head, "spec": {}, "status": status}, 201)

    async def _review(self, request: web.Request, target: ResourcePath, identity: Identity) -> web.StreamResponse:
        user = {"username": identity.name, "groups": [*identity.groups, "system:authenticated"]}
        head = {"kind": target.kind.kind, "apiVersion": target.kind.api_version, "metadata": {}}
        return json_answer({**head, "status": {"userInfo": user}}, 201)


def _unmeasurable(measured: ServedKind, target: ResourcePath) -> Failure:
    """Return metrics-server's failure for an object that does not exist."""
    if measured.namespaced:
        return not_found(measured, target.name)
    return Failure(404, "NotFound", f'node "{target.name}" not found', {"name": target.name, "kind": "node"})


def _not_measured(kind: ServedKind, key: str) -> Failure:
    plural = kind.kind.lower()
    details = {"name": key, "group": _METRICS, "kind": plural}
    return Failure(404, "NotFound", f'{plural}.{_METRICS} "{key}" not found', details)
