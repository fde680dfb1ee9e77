"""A Prometheus beside the embedded cluster: its configuration, and how it is started.

Debian's Prometheus is built without the discovery of Kubernetes' nodes, so it asks this cluster for its targets over HTTP.
"""

import base64
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from grid.sandbox.apiserver.certificates import write_private

PERIOD_SECONDS = 15
# Some days of a few nodes are enough for the charts; whichever bound is reached first holds.
RETENTION = ("--storage.tsdb.retention.time=3d", "--storage.tsdb.retention.size=512MB")
_TARGETS_PATH = "/sandbox/scrape-targets"
_STATE_PATH = "/sandbox/kube-state-metrics"


def installed() -> str:
    """Return the path of the machine's Prometheus; "" when there is none."""
    return shutil.which("prometheus") or ""


def configuration(
    server: str, token: str, authority: Path, *, seconds: int, own: Mapping[str, int] | None = None
) -> dict[str, Any]:
    """Return the configuration that scrapes the API server at this URL, through it each node's kubelet, the state of its objects, and
    Compute Grid's programs: `own` has their loopback ports of /metrics, which want no token, by name."""
    # The type is said, because what asks for targets sends a bare token without it.
    access = {"authorization": {"type": "Bearer", "credentials": token}, "tls_config": {"ca_file": str(authority)}}
    address = urlsplit(server).netloc
    discovery = {**access, "url": f"{server}{_TARGETS_PATH}", "refresh_interval": f"{seconds}s"}
    cadvisor = {"job_name": "cadvisor", "scheme": "https", **access, "http_sd_configs": [discovery]}
    state = {
        "job_name": "kube-state-metrics",
        "scheme": "https",
        **access,
        "honor_labels": True,
        "metrics_path": _STATE_PATH,
        "static_configs": [{"targets": [address]}],
    }
    server_itself = {"job_name": "apiserver", "scheme": "https", **access, "static_configs": [{"targets": [address]}]}
    programs = [
        {"job_name": f"compute-grid-{name}", "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}
        for name, port in (own or {}).items()
    ]
    times = {"scrape_interval": f"{seconds}s", "scrape_timeout": f"{min(seconds, 10)}s"}
    return {"global": times, "scrape_configs": [cadvisor, state, server_itself, *programs]}


def targets(server: str, nodes: Iterable[str]) -> list[dict[str, Any]]:
    """Return the kubelets of these nodes as a Prometheus wants to be told its targets; `server` is the API server's host and port."""
    return [
        {
            "targets": [server],
            "labels": {
                "__metrics_path__": f"/api/v1/nodes/{node}/proxy/metrics/cadvisor",
                "node": node,
                "instance": node,
            },
        }
        for node in nodes
    ]


def prepare(
    folder: Path, kubeconfig: Path, port: int, *, seconds: int = PERIOD_SECONDS, own: Mapping[str, int] | None = None
) -> list[str]:
    """Write what a Prometheus on this loopback port needs below `folder`, readable by this user alone, and return its command.

    What it has scraped is kept there too, and found by the next one. `own` as in `configuration`. Raise OSError.
    """
    config = yaml.safe_load(kubeconfig.read_text())
    cluster: Mapping[str, str] = config["clusters"][0]["cluster"]
    current = next(context["context"] for context in config["contexts"] if context["name"] == config["current-context"])
    token: str = next(user["user"]["token"] for user in config["users"] if user["name"] == current["user"])
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    authority, file = folder / "cluster-authority.crt", folder / "prometheus.yml"
    write_private(authority, base64.b64decode(cluster["certificate-authority-data"]).decode())
    made = configuration(cluster["server"], token, authority, seconds=seconds, own=own)
    write_private(file, yaml.safe_dump(made, sort_keys=False))
    return [
        *(installed(), f"--config.file={file}", f"--storage.tsdb.path={folder / 'data'}"),
        *(*RETENTION, f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"),
    ]
