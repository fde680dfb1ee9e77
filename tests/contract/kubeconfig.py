"""Reads a kubeconfig into what a plain HTTP client needs: address, TLS settings and credentials.

Understands a bearer token, a token file and a client certificate, each as data or as a file. Login plugins are refused
with a sentence, because the suite must run without programs of a cloud.
"""

import base64
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml


@dataclass(frozen=True, slots=True)
class Connection:
    """Where the API is and how to be let in; `tls` is None for plain HTTP."""

    server: str
    token: str
    tls: ssl.SSLContext | None
    tls_without_certificate: ssl.SSLContext | None


def read_kubeconfig(path: Path) -> Connection:
    config = yaml.safe_load(path.read_text())
    context = _named(config, "contexts", config["current-context"])["context"]
    cluster = _named(config, "clusters", context["cluster"])["cluster"]
    user = _named(config, "users", context["user"])["user"]
    if not {"token", "tokenFile", "client-certificate", "client-certificate-data"} & set(user):
        raise ValueError(
            f"{path}: user {context['user']} has neither a token nor a client certificate; write a token into it"
        )
    secure = str(cluster["server"]).startswith("https:")
    return Connection(
        server=str(cluster["server"]).rstrip("/"),
        token=_token(user, path.parent),
        tls=_tls(cluster, user, path.parent) if secure else None,
        tls_without_certificate=_tls(cluster, {}, path.parent) if secure else None,
    )


def _named(config: dict[str, Any], section: str, name: str) -> dict[str, Any]:
    for entry in config.get(section) or ():
        if entry["name"] == name:
            return dict(entry)
    raise ValueError(f"the kubeconfig names {name!r} but its {section} do not have it")


def _token(user: dict[str, Any], folder: Path) -> str:
    if "tokenFile" in user:
        return folder.joinpath(str(user["tokenFile"])).read_text().strip()
    return str(user.get("token", ""))


def _tls(cluster: dict[str, Any], user: dict[str, Any], folder: Path) -> ssl.SSLContext:
    authority = _pem(cluster, "certificate-authority", folder)
    context = ssl.create_default_context(cadata=authority.decode() if authority else None)
    if cluster.get("insecure-skip-tls-verify"):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    certificate, key = _pem(user, "client-certificate", folder), _pem(user, "client-key", folder)
    if certificate and key:
        # The ssl module loads a certificate only from a file, so the data goes through one that is removed at once.
        with tempfile.NamedTemporaryFile() as file:
            file.write(certificate + b"\n" + key)
            file.flush()
            context.load_cert_chain(file.name)
    return context


def _pem(entry: dict[str, Any], key: str, folder: Path) -> bytes:
    if f"{key}-data" in entry:
        return base64.b64decode(entry[f"{key}-data"])
    return (folder / entry[key]).read_bytes() if key in entry else b""
