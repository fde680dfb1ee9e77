"""The files in the embedded cluster's data directory, and the checks whether they are usable."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization

from grid.core.data_files import ManagedFile, database_rows, json_of


class _Addresses(msgspec.Struct):
    block: int
    next_pod: int
    pods: dict[str, int]
    nodes: dict[str, int]
    services: dict[str, int] = {}


def certificate(path: Path) -> str:
    try:
        expires = x509.load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc
    except ValueError:
        return "is no certificate"
    return f"has expired on {expires:%Y-%m-%d}" if expires <= datetime.now(UTC) else ""


def signed_by(authority: str) -> Callable[[Path], str]:
    """Return a check of a private key and its certificate, which the authority in the same folder must have signed."""

    def check(path: Path) -> str:
        content = path.read_bytes()
        try:
            key = serialization.load_pem_private_key(content, None)
            leaf = x509.load_pem_x509_certificate(content)
        except (ValueError, TypeError):
            return "is no key with its certificate"
        if leaf.public_key() != key.public_key():
            return "has a key and a certificate that do not belong together"
        try:
            signer = x509.load_pem_x509_certificate((path.parent / authority).read_bytes())
        except (OSError, ValueError):
            return ""  # without its authority both are made anew; a damaged authority is reported by its own row
        try:
            leaf.verify_directly_issued_by(signer)
        except (InvalidSignature, ValueError, TypeError):
            return f"was not signed by {authority}"
        return certificate(path)

    return check


_BOTH = "move it and {} away: both are made anew"
_TLS = _BOTH + ", and copies of the kubeconfig have to be taken again"

KEPT_FILES: tuple[ManagedFile, ...] = (
    ManagedFile("lock", "nothing: it shows that a cluster runs here", may_be_empty=True, is_written=True),
    *database_rows(
        "cluster.sqlite3",
        "all objects of the embedded cluster",
        "move the folder that it is in away: the cluster then begins empty, what runs in it is lost, and the volumes stay in the "
        "folder that you moved",
        "objects",
        "counter",
    ),
    ManagedFile(
        "tokens.json",
        "the tokens of the embedded cluster's clients",
        "move it away: new ones are made, and copies of the kubeconfig have to be taken again",
        json_of(dict[str, str]),
    ),
    ManagedFile("ca.crt", "the embedded cluster's certificate authority", _TLS.format("server.pem"), certificate),
    ManagedFile(
        "server.pem",
        "key and certificate of the embedded cluster's API server",
        _TLS.format("ca.crt"),
        signed_by("ca.crt"),
    ),
    ManagedFile(
        "front-proxy-ca.crt",
        "the authority by which APIs of other programs know the embedded cluster",
        _BOTH.format("front-proxy-client.pem"),
        certificate,
    ),
    ManagedFile(
        "front-proxy-client.pem",
        "key and certificate by which APIs of other programs know the embedded cluster",
        _BOTH.format("front-proxy-ca.crt"),
        signed_by("front-proxy-ca.crt"),
    ),
    ManagedFile("kubeconfig", "the way to reach the embedded cluster", made_anew=True),
    ManagedFile("machine", "nodes, pods and volumes of the embedded cluster", is_folder=True),
    ManagedFile(
        "machine/fleet.json",
        "the names of this machine's nodes",
        "move it away: this machine then has new nodes, and what ran on the old ones is lost",
        json_of(dict[str, dict[str, str]]),
    ),
    ManagedFile(
        "machine/addresses.json",
        "the addresses of this machine's nodes, pods and Services",
        "move it away: new ones are given, and what still runs from before has to be launched again",
        json_of(_Addresses),
    ),
    *(
        ManagedFile(f"machine/{program}.{end}", f"a certificate of this machine's {words}", made_anew=True)
        for program, words in (("kubelet", "kubelets"), ("metrics-server", "metrics server"))
        for end in ("crt", "key")
    ),
    # A pod whose files are damaged is restarted by its kubelet, and the content of volumes is known to their owners only.
    ManagedFile("machine/nodes", "the pods of this machine's nodes", is_folder=True, is_free_below=True),
    ManagedFile("machine/volumes", "the files of projects", is_folder=True, is_free_below=True),
    ManagedFile("machine/repositories", "the files of projects in Git", is_folder=True, is_free_below=True),
    ManagedFile("images", "pulled images", is_folder=True, is_free_below=True),
)
