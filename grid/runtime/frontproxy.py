"""How a request of the API server is authenticated: by the cluster's front-proxy authority and the names that it signs.

Kubernetes publishes both in the ConfigMap `kube-system/extension-apiserver-authentication`. The API server has already authorized the
request behind that certificate, so nothing else is decided here.
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
    """The front proxy's authority, in PEM, and the allowed names; no names mean that any is allowed, as in Kubernetes."""

    authority: str
    names: Collection[str]

    def accepts(self, certificate: Any) -> bool:
        """Return True when `certificate`, signed by the authority and as `ssl` describes it, is an API server's."""
        subject = [pair for part in certificate.get("subject", ()) for pair in part]
        return not self.names or any(key == "commonName" and value in self.names for key, value in subject)


def front_proxy_of(config_map: ConfigMap | None) -> FrontProxy | None:
    """Return the front proxy that the ConfigMap announces; None when it announces none that can be used."""
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
