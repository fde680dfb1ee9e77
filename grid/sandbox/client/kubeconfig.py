"""Reading of a kubeconfig: server, authority and credentials. Data or files; token or client certificate."""

import base64
import binascii
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml


class BadKubeconfig(ValueError):
    """The kubeconfig cannot be used; the message tells its user why."""


@dataclass(frozen=True, slots=True)
class ServerAccess:
    """The address of an API server, and the credentials for it."""

    server: str
    token: str = ""
    ssl_context: ssl.SSLContext | None = None


def read_kubeconfig(path: str | Path, context: str = "") -> ServerAccess:
    path = Path(path)
    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadKubeconfig(f"the kubeconfig {path} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadKubeconfig(f"the kubeconfig {path} is not YAML") from error
    if not isinstance(config, dict):
        raise BadKubeconfig(f"the kubeconfig {path} is empty")
    chosen = _named(config, "contexts", "context", context or str(config.get("current-context", "")), path)
    cluster = _named(config, "clusters", "cluster", str(chosen.get("cluster", "")), path)
    user = _named(config, "users", "user", str(chosen.get("user", "")), path)
    server = str(cluster.get("server", "")).rstrip("/")
    if not server.startswith(("http://", "https://")):
        raise BadKubeconfig(f"the kubeconfig {path} names no server that starts with http:// or https://")
    context_for_tls = _tls(cluster, user, path.parent) if server.startswith("https://") else None
    return ServerAccess(server, _token(user, path.parent), context_for_tls)


def _named(config: dict[str, Any], section: str, inner: str, name: str, path: Path) -> dict[str, Any]:
    for entry in config.get(section) or ():
        if isinstance(entry, dict) and entry.get("name") == name:
            return dict(entry.get(inner) or {})
    raise BadKubeconfig(f"the kubeconfig {path} has no {inner} named “{name}”")


def _token(user: dict[str, Any], folder: Path) -> str:
    if user.get("token"):
        return str(user["token"])
    if user.get("tokenFile"):
        return _bytes_of(user, "token", folder, file_key="tokenFile").decode().strip()
    return ""


def _bytes_of(section: dict[str, Any], key: str, folder: Path, *, file_key: str = "") -> bytes:
    """Return the content of `key-data` or of the file that `key` names (relative to the kubeconfig), or b"" without either."""
    data = section.get(f"{key}-data")
    if data:
        try:
            return base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError) as error:
            raise BadKubeconfig(f"the kubeconfig's {key}-data is not base64") from error
    named = section.get(file_key or key)
    if not named:
        return b""
    try:
        return (folder / str(named)).read_bytes()
    except OSError as error:
        raise BadKubeconfig(f"the kubeconfig's {key} {named} cannot be read: {error.strerror}") from error


def _tls(cluster: dict[str, Any], user: dict[str, Any], folder: Path) -> ssl.SSLContext:
    authority = _bytes_of(cluster, "certificate-authority", folder)
    tls = ssl.create_default_context(cadata=authority.decode() if authority else None)
    if cluster.get("insecure-skip-tls-verify"):
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
    certificate = _bytes_of(user, "client-certificate", folder)
    key = _bytes_of(user, "client-key", folder)
    if certificate and key:
        with _private_file(certificate) as certificate_file, _private_file(key) as key_file:
            tls.load_cert_chain(certificate_file, key_file)
    return tls


@contextmanager
def _private_file(content: bytes) -> Iterator[str]:
    """Yield the name of a temporary file that only this user can read, because the ssl module reads certificates from files only."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        yield file.name
