"""By what a request of the API server is known: the cluster's front-proxy authority, and the names that it signs for.

Kubernetes publishes both in the ConfigMap `kube-system/extension-apiserver-authentication`. Behind that certificate the API server
has already asked who may read what, so nothing else is decided here.
"""

import json
import ssl
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from grid.kube.objects import ConfigMap

NAMESPACE, NAME = "kube-system", "extension-apiserver-authentication"


@dataclass(frozen=True, slots=True)
class FrontProxy:
    """`authority` is PEM; no names mean that any will do, as Kubernetes has it."""

    authority: str
    names: Collection[str]

    def accepts(self, certificate: Any) -> bool:
        """Whether a certificate that the authority signed, as `ssl` describes it, is that of an API server."""
        subject = [pair for part in certificate.get("subject", ()) for pair in part]
        return not self.names or any(key == "commonName" and value in self.names for key, value in subject)


def front_proxy_of(config_map: ConfigMap | None) -> FrontProxy | None:
    """None where the cluster announces none, or nothing that can be used."""
    data = config_map.data if config_map is not None else {}
    authority = data.get("requestheader-client-ca-file", "")
    if not authority:
        return None
    try:
        names = json.loads(data.get("requestheader-allowed-names") or "[]")
        ssl.create_default_context(cadata=authority)
    except (ValueError, ssl.SSLError):
        return None
    return FrontProxy(authority, tuple(str(name) for name in names))
