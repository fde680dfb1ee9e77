"""The front proxy: the client certificate and the headers by which an aggregated API recognizes requests of this API server.

As on other clusters the certificate has an authority of its own, and the ConfigMap `kube-system/extension-apiserver-authentication`
publishes both. A program that serves an aggregated API trusts X-Remote-User and X-Remote-Group only with that certificate.
"""

import json
import ssl
from dataclasses import dataclass
from pathlib import Path

from grid.sandbox.apiserver.certificates import make_client
from grid.sandbox.apiserver.identity import Identity
from grid.sandbox.apiserver.kinds import Object, stored_kinds
from grid.sandbox.apiserver.registry import Registry

_NAME = "front-proxy-client"
_CONFIG = "extension-apiserver-authentication"
PREFIX = "X-Remote-"


@dataclass(frozen=True, slots=True)
class FrontProxyCertificate:
    """The client certificate: `chain` is a file with key and certificate, `authority` the PEM of the authority that signed it."""

    chain: Path
    authority: str

    @classmethod
    def load_or_make(cls, directory: Path) -> "FrontProxyCertificate":
        authority, chain = directory / "front-proxy-ca.crt", directory / "front-proxy-client.pem"
        if not (authority.exists() and chain.exists()):
            make_client(authority, chain, authority_name="sandbox-front-proxy-ca", name=_NAME)
        return cls(chain, authority.read_text())

    def context(self, bundle: str, *, trusting: bool) -> ssl.SSLContext:
        """Return a TLS context that trusts `bundle`, or any certificate if `trusting`.

        `bundle` is PEM, "" for the system's authorities. Raise ssl.SSLError when it is unreadable.
        """
        context = ssl.create_default_context(cadata=bundle or None)
        if trusting:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        context.load_cert_chain(self.chain)
        return context

    def announce(self, registry: Registry) -> None:
        """Write the ConfigMap, or bring it up to date."""
        data = {
            "requestheader-allowed-names": json.dumps([_NAME]),
            "requestheader-client-ca-file": self.authority,
            "requestheader-extra-headers-prefix": json.dumps([f"{PREFIX}Extra-"]),
            "requestheader-group-headers": json.dumps([f"{PREFIX}Group"]),
            "requestheader-username-headers": json.dumps([f"{PREFIX}User"]),
        }
        kind, key = stored_kinds()["configmaps"], f"kube-system/{_CONFIG}"
        if registry.store.get(kind.resource, key) is None:
            body: Object = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": _CONFIG}, "data": data}
            registry.create(kind, "kube-system", body)
        else:
            registry.update(kind, key, lambda obj: {**obj, "data": {**(obj.get("data") or {}), **data}})


def identity_headers(identity: Identity) -> list[tuple[str, str]]:
    groups = (*identity.groups, "system:authenticated")
    return [(f"{PREFIX}User", identity.name), *((f"{PREFIX}Group", group) for group in groups)]
