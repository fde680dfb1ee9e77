"""The embedded cluster's API server: Kubernetes' REST API over HTTPS on a loopback address, for one data directory.

This module is the HTTP layer: it finds the caller (`identity`), the target (`paths`) and the form of the answer (`bodies`).
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import yaml
from aiohttp import web

from grid.core.regexes import Expression
from grid.sandbox.apiserver import counting, discovery, openapi
from grid.sandbox.apiserver.aggregation import Aggregator
from grid.sandbox.apiserver.answers import json_answer
from grid.sandbox.apiserver.bodies import JSON, Form, negotiate, parse_bool
from grid.sandbox.apiserver.certificates import load_or_make
from grid.sandbox.apiserver.changing import FieldValidation, decode_new, is_dry_run, patching, replacement, validated
from grid.sandbox.apiserver.deletion import DeleteOptions
from grid.sandbox.apiserver.frontproxy import FrontProxyCertificate
from grid.sandbox.apiserver.furnishing import furnish
from grid.sandbox.apiserver.garbage import Janitor
from grid.sandbox.apiserver.identity import KUBELET_CLIENT, Identity, Tokens, kubeconfig
from grid.sandbox.apiserver.interruptions import Interruptions, end_connections
from grid.sandbox.apiserver.kinds import KINDS, has_group
from grid.sandbox.apiserver.kubelets import Kubelets
from grid.sandbox.apiserver.listing import encoded, encoded_metadata, item, list_page, parse_version
from grid.sandbox.apiserver.paths import ResourcePath, UnknownGroup, parse_path
from grid.sandbox.apiserver.registry import Mutation, Registry
from grid.sandbox.apiserver.special import Handler, Special
from grid.sandbox.apiserver.status import Failure, details_of, not_allowed, success, too_large_version
from grid.sandbox.apiserver.store import ObjectStore, Record
from grid.sandbox.apiserver.streaming import StreamSettings, stream_watch
from grid.sandbox.apiserver.tables import partial, table

log = logging.getLogger(__name__)

_OPEN_PATHS = ("/version", "/healthz", "/livez", "/readyz")
# The kubelets' metrics by the API server's proxy, which is how a Prometheus without a way to the nodes scrapes them.
_SCRAPED = Expression(r"/api/v1/nodes/([^/]+)/proxy/(metrics/(?:cadvisor|resource))")
BESIDE = "/sandbox/"  # paths outside Kubernetes' API
_MOST_BODY_BYTES = 3 * 1024 * 1024


class ApiServer:
    """One cluster's API server. `start()` listens, `stop()` ends all watches and closes the store."""

    def __init__(
        self,
        data_dir: Path,
        tokens: Tokens,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        rng: random.Random | None = None,
        history: int = 5000,
        streams: StreamSettings | None = None,
    ) -> None:
        self.tokens = tokens
        self.clock = clock
        self.certificate = load_or_make(data_dir)
        self.store = ObjectStore(data_dir / "cluster.sqlite3", history=history)
        self.registry = Registry(
            self.store, clock=clock, rng=rng or random.SystemRandom(), authority=self.certificate.authority
        )
        self.janitor = Janitor(self.registry)
        self._front_proxy = FrontProxyCertificate.load_or_make(data_dir)
        self.aggregator = Aggregator(self.registry, self._front_proxy)
        self._kubelets = Kubelets(self.store, token=tokens.by_name[KUBELET_CLIENT])
        self._special = Special(self.registry, self._kubelets, tokens)
        self.streams = streams or StreamSettings()
        self.address = ""
        self._requests = counting.Requests()
        self.interruptions = Interruptions()
        self.beside: Callable[[web.Request], Awaitable[web.StreamResponse]] | None = None
        self._site: web.TCPSite | None = None
        self._runner: web.AppRunner | None = None
        self._tasks: list[asyncio.Task[None]] = []
        furnish(self.registry)
        self._front_proxy.announce(self.registry)

    def kubeconfig(self) -> str:
        """Return the kubeconfig for clients of this server, once it listens."""
        return kubeconfig(f"https://{self.address}", self.tokens, self.certificate.authority)

    async def start(self, port: int = 0, host: str = "127.0.0.1") -> str:
        """Listen; return the server's URL."""
        application = web.Application(client_max_size=_MOST_BODY_BYTES)
        application.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(application, access_log=None, handler_cancellation=True, shutdown_timeout=1.0)
        await self._runner.setup()
        await self._listen(self._runner, host, port)
        self.address = "{}:{}".format(*self._runner.addresses[0])
        self._tasks = [
            asyncio.create_task(self.janitor.run(), name="janitor"),
            asyncio.create_task(self.aggregator.run(), name="aggregator"),
        ]
        return f"https://{self.address}"

    async def _listen(self, runner: web.AppRunner, host: str, port: int) -> None:
        self._site = web.TCPSite(runner, host, port, backlog=1024, ssl_context=self.certificate.context)
        await self._site.start()

    async def be_away(self, seconds: float) -> None:
        """Simulate a restart: end all connections, accept none for so many seconds, and forget the history."""
        assert self._runner is not None and self._site is not None
        self.interruptions.cut_all()
        await self._site.stop()
        end_connections(self._runner)
        self.store.forget_everything()
        await asyncio.sleep(seconds)
        host, _, port = self.address.rpartition(":")
        await self._listen(self._runner, host, int(port))

    async def stop(self) -> None:
        self.interruptions.end()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._runner is not None:
            await self._runner.cleanup()
        await self._kubelets.close()
        self.store.close()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        try:
            return await self._answer(request)
        except Failure as failure:
            headers = {"Retry-After": str(failure.retry_after)} if failure.retry_after else None
            return json_answer(failure.body(), failure.code, headers)
        except UnknownGroup:
            return web.Response(status=404, text="404 page not found\n")
        except web.HTTPRequestEntityTooLarge:
            problem = f"Request entity too large: limit is {_MOST_BODY_BYTES}"
            return json_answer(Failure(413, "RequestEntityTooLarge", problem).body(), 413)
        except (web.HTTPException, ConnectionError):
            raise
        except Exception as problem:
            log.exception("%s %s failed", request.method, request.path)
            return json_answer(Failure(500, "InternalError", f"Internal error occurred: {problem}", {}).body(), 500)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        path = request.path.rstrip("/") or "/"
        if path in _OPEN_PATHS or path.partition("/readyz/")[0] == "":
            return json_answer(discovery.VERSION) if path == "/version" else web.Response(text="ok")
        identity = self.tokens.identify(request.headers.get("Authorization", ""), self.clock())
        if identity is None:
            raise Failure(401, "Unauthorized", "Unauthorized")
        if self.beside is not None and path.startswith(BESIDE):
            return await self.beside(request)
        await self.interruptions.passing()
        others = self.aggregator.responsible(path)
        if others is not None:
            return await self.aggregator.forward(request, identity, others)
        described = self._describe(request, path)
        if described is not None:
            return described
        if path == "/metrics":
            return web.Response(text=self._requests.text(), headers={"Content-Type": counting.CONTENT_TYPE})
        if request.method == "GET" and (scraped := _SCRAPED.fullmatch(path)) is not None:
            text = await self._kubelets.scrape(*scraped.groups())
            return web.Response(text=text, headers={"Content-Type": counting.CONTENT_TYPE})
        target = parse_path(path)
        self._requests.note(request, target)
        handler = self._handler(request, target)
        return await handler(request, target, identity)

    def _describe(self, request: web.Request, path: str) -> web.Response | None:
        """Answer a discovery request; return None when the path is not part of discovery."""
        parts = path.strip("/").split("/")
        form = Form()
        if path in ("/api", "/apis"):
            form = negotiate(request.headers.get("Accept", ""))
        if form.discovery:
            others = self.aggregator.served()
            body = discovery.aggregated([""]) if path == "/api" else discovery.aggregated(others=others)
            return json_answer(body, content_type=f"{JSON};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
        match parts:
            case ["api"]:
                return json_answer(discovery.api_versions(self.address))
            case ["apis"]:
                return json_answer(discovery.group_list(self.aggregator.groups()))
            case ["api", "v1"]:
                return json_answer(discovery.resource_list("", "v1"))
            case ["apis", group] if has_group(group):
                return json_answer(discovery.one_group(group))
            case ["apis", group] if group in (served := self.aggregator.groups()):
                return json_answer(discovery.one_group(group, served[group]))
            case ["apis", group, version] if has_group(group, version):
                return json_answer(discovery.resource_list(group, version))
            case ["openapi", "v3"]:
                return json_answer(openapi.index(KINDS))
            case ["openapi", "v3", *root]:
                document = openapi.document("/".join(root), KINDS)
                return None if document is None else json_answer(document)
            case _:
                return None

    def _handler(self, request: web.Request, target: ResourcePath) -> Handler:
        """Return the method for a request. Raise a 405 `Failure` when there is none."""
        special = self._special.find(request.method, target)
        if special is not None:
            return special
        collection = not target.name
        match request.method:
            case "GET" if parse_bool(request.query, "watch"):
                verb, handler = "watch", self._watch
            case "GET":
                verb, handler = ("list", self._list) if collection else ("get", self._get)
            case "POST" if collection:
                verb, handler = "create", self._create
            case "PUT" if not collection:
                verb, handler = "update", self._update
            case "PATCH" if not collection:
                verb, handler = "patch", self._patch
            case "DELETE":
                verb, handler = ("deletecollection", self._delete_all) if collection else ("delete", self._delete)
            case _:
                raise not_allowed()
        allowed = target.subresource.verbs if target.subresource else target.kind.verbs
        if verb not in allowed:
            raise not_allowed()
        return handler

    # Reading

    async def _get(self, request: web.Request, target: ResourcePath, identity: Identity) -> web.StreamResponse:
        form = negotiate(request.headers.get("Accept", ""))
        asked = parse_version(request.query.get("resourceVersion", ""))
        if asked > self.store.version:
            raise too_large_version(asked, self.store.version)
        return self._object(request, target, self.registry.read(target.kind, target.key), form)

    async def _list(self, request: web.Request, target: ResourcePath, identity: Identity) -> web.StreamResponse:
        form = negotiate(request.headers.get("Accept", ""))
        page = list_page(self.store, target, request.query)
        kind = target.kind
        if form.transform == "Table":
            objects = [record.obj for record in page.records]
            include = request.query.get("includeObject", "Metadata")
            return json_answer({**table(kind, objects, include=include, now=self.clock()), "metadata": page.metadata})
        if form.transform:
            return web.Response(body=encoded_metadata(page), content_type=JSON)
        body = encoded(kind, page)
        if form.yaml:
            return json_answer(msgspec.json.decode(body), form=form)
        return web.Response(body=body, content_type=JSON)

    async def _watch(self, request: web.Request, target: ResourcePath, identity: Identity) -> web.StreamResponse:
        form = negotiate(request.headers.get("Accept", ""))
        return await stream_watch(
            request, target, form, self.store, self.streams, self.interruptions.line(), self.clock
        )

    # Changing

    async def _create(self, request: web.Request, target: ResourcePath, identity: Identity) -> web.StreamResponse:
        form = negotiate(request.headers.get("Accept", ""))
        kind = target.kind
        body = await request.read()
        dry_run = is_dry_run("CreateOptions", request.query)
        validation = FieldValidation(kind, request.query.get("fieldValidation") or "Warn")
        obj = decode_new(body, request.headers.get("Content-Type", ""), validation)
        namespace = target.namespace or obj["metadata"].get("namespace") or "default"
        record = self.registry.create(kind, namespace, obj, dry_run=dry_run)
        return _warned(self._object(request, target, record, form, 201), validation)

    async def _update(self, request: web.Request, target: ResourcePath, identity: Identity) -> web.StreamResponse:
        body = await request.read()
        dry_run = is_dry_run("UpdateOptions", request.query)
        validation = FieldValidation(target.kind, request.query.get("fieldValidation") or "Warn")
        mutation = replacement(body, request.headers.get("Content-Type", ""), validation)
        return self._changed(request, target, mutation, validation, dry_run=dry_run)

    async def _patch(self, request: web.Request, target: ResourcePath, identity: Identity) -> web.StreamResponse:
        media = request.headers.get("Content-Type", "")
        body = await request.read()
        dry_run = is_dry_run("PatchOptions", request.query)
        validation = FieldValidation(target.kind, request.query.get("fieldValidation") or "Warn")
        mutation = patching(body, media, target.kind.kind)
        return self._changed(request, target, validated(mutation, validation), validation, dry_run=dry_run)

    def _changed(
        self,
        request: web.Request,
        target: ResourcePath,
        mutation: Mutation,
        validation: FieldValidation,
        *,
        dry_run: bool,
    ) -> web.StreamResponse:
        form = negotiate(request.headers.get("Accept", ""))
        subresource = target.subresource.name if target.subresource else ""
        record = self.registry.update(target.kind, target.key, mutation, subresource=subresource, dry_run=dry_run)
        return _warned(self._object(request, target, record, form), validation)

    async def _delete(self, request: web.Request, target: ResourcePath, identity: Identity) -> web.StreamResponse:
        form = negotiate(request.headers.get("Accept", ""))
        options = await self._delete_options(request)
        deletion = self.registry.delete(target.kind, target.key, options)
        if deletion.gone and not target.kind.returns_deleted:
            metadata = deletion.record.obj["metadata"]
            return json_answer(success(details={**details_of(target.kind, metadata["name"]), "uid": metadata["uid"]}))
        return self._object(request, target, deletion.record, form)

    async def _delete_all(self, request: web.Request, target: ResourcePath, identity: Identity) -> web.StreamResponse:
        options = await self._delete_options(request)
        page = list_page(self.store, target, request.query)
        for record in page.records:
            if self.store.get(target.kind.resource, record.key) is not None:
                self.registry.delete(target.kind, record.key, options)
        items = [item(record.obj) for record in page.records]
        head = {"kind": f"{target.kind.kind}List", "apiVersion": target.kind.api_version, "metadata": page.metadata}
        return json_answer({**head, "items": items})

    async def _delete_options(self, request: web.Request) -> DeleteOptions:
        body = await request.read()
        try:
            given: Any = msgspec.json.decode(body or b"{}")
        except msgspec.DecodeError:
            given = yaml.safe_load(body)
        is_dry_run("DeleteOptions", request.query)
        return DeleteOptions.parse(given if isinstance(given, dict) else {}, request.query)

    # Answering

    def _object(
        self, request: web.Request, target: ResourcePath, record: Record, form: Form, code: int = 200
    ) -> web.StreamResponse:
        kind = target.kind
        if form.transform == "Table":
            include = request.query.get("includeObject", "Metadata")
            body = table(kind, [record.obj], include=include, now=self.clock())
            body["metadata"] = {"resourceVersion": record.obj["metadata"].get("resourceVersion", "")}
            return json_answer(body, code)
        if form.transform:
            return json_answer(partial(record.obj), code)
        if form.yaml:
            return json_answer(record.obj, code, form=form)
        return web.Response(body=record.raw, status=code, content_type=JSON)


def _warned(response: web.StreamResponse, validation: FieldValidation) -> web.StreamResponse:
    for warning in validation.warnings:
        text = warning.replace("\\", "\\\\").replace('"', '\\"')
        response.headers.add("Warning", f'299 - "{text}"')
    return response
