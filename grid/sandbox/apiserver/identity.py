"""The clients of the embedded cluster: fixed identities, each with a bearer token made at the first start.

There is no authorization beyond that: every identity may do everything. The tokens are in `tokens.json` in the data
directory, which only its owner can read; the kubeconfig that clients use is written from it.
"""

import base64
import hmac
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import yaml

from grid.sandbox.apiserver.certificates import write_private


@dataclass(frozen=True, slots=True)
class Identity:
    name: str
    groups: tuple[str, ...] = ()


# The API server asks the kubelets for logs and usage under this name, which is kubeadm's.
KUBELET_CLIENT = "kube-apiserver-kubelet-client"

IDENTITIES: tuple[Identity, ...] = (
    Identity("admin", ("system:masters",)),
    Identity("compute-grid-web"),
    Identity("compute-grid-proxy"),
    Identity("compute-grid-controller"),
    Identity("system:kube-scheduler"),
    Identity("system:kube-controller-manager"),
    Identity("system:cluster-autoscaler"),
    Identity("system:kubelet", ("system:nodes",)),
    Identity(KUBELET_CLIENT),
)
# Contexts of the written kubeconfig and who they are; the first is the current one.
CONTEXTS: Mapping[str, str] = {
    "admin": "admin",
    "web": "compute-grid-web",
    "proxy": "compute-grid-proxy",
    "controller": "compute-grid-controller",
    "scheduler": "system:kube-scheduler",
    "controller-manager": "system:kube-controller-manager",
    "cluster-autoscaler": "system:cluster-autoscaler",
    "kubelet": "system:kubelet",
}


class Tokens:
    """Tokens by identity, and identities by token."""

    def __init__(self, by_name: Mapping[str, str]) -> None:
        self.by_name = dict(by_name)
        self._identities = {by_name[identity.name]: identity for identity in IDENTITIES}
        self._ends: dict[str, datetime] = {}

    @classmethod
    def load_or_make(cls, path: Path) -> "Tokens":
        """Return the tokens in the file; create and store one for each identity that has none."""
        known: dict[str, str] = json.loads(path.read_text()) if path.exists() else {}
        complete = {identity.name: known.get(identity.name) or secrets.token_urlsafe(32) for identity in IDENTITIES}
        if complete != known:
            write_private(path, json.dumps(complete, indent=2) + "\n")
        return cls(complete)

    def add(self, token: str, identity: Identity, expires: datetime) -> None:
        """Accept one more token until it expires or the server stops, for service accounts."""
        self._identities[token] = identity
        self._ends[token] = expires

    def identify(self, authorization: str, now: datetime) -> Identity | None:
        scheme, _, given = authorization.partition(" ")
        if scheme.lower() != "bearer":
            return None
        for token in [token for token, end in self._ends.items() if end <= now]:
            del self._ends[token], self._identities[token]
        matched = None
        for token, identity in self._identities.items():
            # Every token is compared, each in constant time, so that the time taken reveals nothing about them.
            if hmac.compare_digest(token.encode(), given.strip().encode()):
                matched = identity
        return matched


def kubeconfig(server: str, tokens: Tokens, authority: str) -> str:
    """Return a kubeconfig with one context for each of `CONTEXTS`."""
    cluster = {"server": server, "certificate-authority-data": base64.b64encode(authority.encode()).decode()}
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "sandbox", "cluster": cluster}],
            "users": [{"name": user, "user": {"token": tokens.by_name[user]}} for user in CONTEXTS.values()],
            "contexts": [
                {"name": name, "context": {"cluster": "sandbox", "user": user}} for name, user in CONTEXTS.items()
            ],
            "current-context": next(iter(CONTEXTS)),
        },
        sort_keys=False,
    )
