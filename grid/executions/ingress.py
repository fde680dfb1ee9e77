"""The way of people's requests from an ingress straight to the pod of a workspace or app (pure), where an installation asks for it. Each
execution with a front gets two Services and two Ingresses, which go with it: `/__grid__/` of its host name leads to our proxy, which logs
people in; everything else leads to nginx in its pod, after the ingress has asked our proxy (`dashboard.proxy.external`). The annotations
are ingress-nginx's; what they say holds for any ingress that can ask another server and pass on headers of its answer."""

import hashlib
from typing import Any

from grid.core.labels import KEYS, PREFIX
from grid.core.origins import BEGIN_PATH
from grid.executions.front import STATE_HEADER, TOKEN_HEADER, IngressSpec
from grid.executions.manifests import Manifest, metadata
from grid.executions.spec import ExecutionSpec
from grid.kube.resources import INGRESSES, SERVICES, Resource

AUTH_PATH = "/__grid__/auth"
OWN_PATHS = "/__grid__/"
# How long an ingress may keep an answer; so long may somebody go on who has just lost the right. Shorter than a token is good for.
CACHED_SECONDS = 30
PASSED_ON = (TOKEN_HEADER, STATE_HEADER, "authorization")
# All that the answer depends on. The cookie, which may hold anything, comes last.
_CACHE_KEY = (
    "${host}-${request_method}-${http_sec_fetch_site}-${http_sec_fetch_mode}-${http_sec_fetch_dest}-"
    "${http_service_worker}-${http_sec_websocket_key}-${http_origin}-${http_cookie}"
)
_DAY = "86400"


def auth_key(execution_id: str, front_key: str) -> str:
    """Return what an ingress shows when it asks about this execution, so that nobody else gets an answer, which has tokens in it."""
    return hashlib.sha256(f"{PREFIX} ingress {execution_id} {front_key}".encode()).hexdigest()


def objects(spec: ExecutionSpec, *, namespace: str, anchor_uid: str = "", front_key: str = "") -> list[Manifest]:
    """Return the Services and Ingresses of an execution; [] without a front, or where people's requests come through our proxy."""
    front = spec.front
    if front is None or front.ingress is None:
        return []
    asked, name = front.ingress, spec.object_name
    own_name = f"{name}-proxy"
    host, _, port = asked.proxy.rpartition(":")

    def made(kind: Resource, name: str, spec_: dict[str, Any], annotations: dict[str, str] | None = None) -> Manifest:
        own = {f"nginx.ingress.kubernetes.io/{name}": value for name, value in (annotations or {}).items()}
        annotated = {"annotations": own} if own else {}
        return Manifest.of(kind, {**metadata(spec, namespace, anchor_uid, name=name), **annotated}, spec=spec_)

    of_all = {
        "proxy-body-size": f"{front.body_mebibytes}m",
        "proxy-buffering": "off",
        "proxy-request-buffering": "off",
        "proxy-read-timeout": _DAY,
        "proxy-send-timeout": _DAY,
    }
    asking = {
        "auth-url": f"http://{asked.proxy}{AUTH_PATH}/{spec.id}/{auth_key(spec.id, front_key)}",
        "auth-response-headers": ",".join(PASSED_ON),
        "auth-signin": f"{asked.origin}/{BEGIN_PATH}",
        "auth-cache-key": _CACHE_KEY,
        "auth-cache-duration": f"200 {CACHED_SECONDS}s",
    }
    ports = [{"name": "front", "port": 80, "targetPort": front.port, "protocol": "TCP"}]
    to_pod = {"selector": {KEYS.execution: spec.id}, "ports": ports}
    to_proxy = {"type": "ExternalName", "externalName": host, "ports": [{"name": "http", "port": int(port)}]}
    return [
        made(SERVICES, name, to_pod),
        made(SERVICES, own_name, to_proxy),
        made(INGRESSES, own_name, _rules(asked, OWN_PATHS, own_name, int(port)), of_all),
        made(INGRESSES, name, _rules(asked, "/", name, 80), {**of_all, **asking}),
    ]


def _rules(asked: IngressSpec, path: str, service: str, port: int) -> dict[str, Any]:
    backend = {"service": {"name": service, "port": {"number": port}}}
    paths = [{"path": path, "pathType": "Prefix", "backend": backend}]
    rules = [{"host": asked.host, "http": {"paths": paths}}]
    tls = {"tls": [{"hosts": [asked.host], "secretName": asked.tls_secret}]} if asked.tls_secret else {}
    return {"ingressClassName": asked.class_name, "rules": rules, **tls}
