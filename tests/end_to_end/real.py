"""Compute Grid beside a real Kubernetes API server: our nodes joined to it, our processes with the rights of deploy/access.yaml.

Nothing of this is the demo mode: settings come from the environment, accounts from `createsuperuser` and the database, and each
process has a kubeconfig with the token of its own service account.
"""

import json
import os
import secrets
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml

from tests.end_to_end.grid import IMAGES, ROOT
from tests.support.ports import free_ports
from tests.support.waiting import wait_until

ADMIN = os.environ.get("REAL_KUBECONFIG", "")
# Shell commands that end and start the API server.
API_DOWN, API_UP = os.environ.get("REAL_API_DOWN", ""), os.environ.get("REAL_API_UP", "")
needs_real_cluster = pytest.mark.skipif(
    not ADMIN, reason="REAL_KUBECONFIG names no administrator's kubeconfig of a cluster without nodes"
)
NAMESPACE = "compute-grid"
SYSTEM_NAMESPACE = "compute-grid-system"
DEPLOY = ROOT / "deploy"
ACCESS = DEPLOY / "access.yaml"
DEMAND = DEPLOY / "external-metrics.yaml"
_BIN = Path(sys.executable).parent
_STOP_SECONDS = 30.0


@dataclass
class RealGrid:
    """`prepare` once, then start the parts; `output` is what a part wrote."""

    folder: Path
    admin: Path  # kubeconfig of a cluster administrator
    database_url: str = ""  # an empty database; SQLite in the folder when not given
    port: int = field(default_factory=lambda: free_ports(3))
    _password: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    _secret_key: str = field(default_factory=lambda: secrets.token_hex(32))
    _parts: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _looked_at: dict[str, int] = field(default_factory=dict)  # how many characters of a part's output are excused

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def folder_of(self, claim: str) -> Path:
        folder = self.folder / "machine" / "machine" / "volumes" / NAMESPACE / claim
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    @property
    def demand_port(self) -> int:
        return self.port + 2

    def password(self, username: str) -> str:
        return self._password

    # --- The cluster, as its administrator

    def kubectl(self, *arguments: str) -> str:
        answer = self.try_kubectl(*arguments)
        assert answer.returncode == 0, answer.stderr
        return answer.stdout

    def try_kubectl(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(_BIN / "kubectl"), "--kubeconfig", str(self.admin), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    def begin_kubectl(self, into: Path, *arguments: str) -> subprocess.Popen[bytes]:
        """A command that goes on, such as a watch, with its output in a file."""
        with into.open("wb") as output:
            return subprocess.Popen([str(_BIN / "kubectl"), "--kubeconfig", str(self.admin), *arguments], stdout=output)

    def may(self, account: str, question: str) -> bool:
        """Whether a service account of ours has a right, as the cluster sees it; the question is one of `kubectl auth can-i`."""
        name = f"system:serviceaccount:{SYSTEM_NAMESPACE}:{account}"
        answer = self.try_kubectl("auth", "can-i", *question.split(), "--as", name)
        assert answer.stdout.strip() in ("yes", "no"), answer.stderr
        return answer.stdout.strip() == "yes"

    def pods(self) -> list[str]:
        """Names of the executions' pods."""
        return self.kubectl("get", "pods", "-n", NAMESPACE, "-o", "name").split()

    def write_kubeconfig(self, account: str) -> Path:
        """The administrator's cluster, with nothing but the token of a service account."""
        view = json.loads(self.kubectl("config", "view", "--raw", "--minify", "--flatten", "-o", "json"))
        token = self.kubectl("create", "token", account, "-n", SYSTEM_NAMESPACE).strip()
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": view["clusters"],
            "users": [{"name": account, "user": {"token": token}}],
            "contexts": [{"name": account, "context": {"cluster": view["clusters"][0]["name"], "user": account}}],
            "current-context": account,
        }
        path = self.folder / f"{account}.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(json.dumps(content))
        return path

    def wait_until_alone(self, *namespaces: str) -> None:
        """No nodes, and none of these namespaces: what the tests before left may still be going."""
        absent = ("get", "namespace", *namespaces, "--ignore-not-found", "-o", "name")

        def strangers() -> str:
            return " ".join((self.kubectl("get", "nodes", "-o", "name") + self.kubectl(*absent)).split())

        wait_until(lambda: not strangers(), 120, f"a cluster without {strangers()}, for it is to be these tests' own")

    # --- The installation, as docs/installation.md describes it

    def settings(self, kubeconfig: Path | None = None) -> dict[str, str]:
        inherited = {name: text for name, text in os.environ.items() if not name.startswith(("GRID_", "DJANGO_"))}
        for name in ("KUBECONFIG", "DATABASE_URL"):
            inherited.pop(name, None)
        if self.database_url:
            inherited["DATABASE_URL"] = self.database_url
        return {
            **inherited,
            "GRID_SECRET_KEY": self._secret_key,
            "GRID_VAR": str(self.folder),
            "GRID_STATIC_ROOT": str(self.folder / "static"),
            "GRID_DASHBOARD_ORIGIN": self.url,
            "GRID_WORKSPACE_ORIGIN": f"http://localhost:{self.port + 1}",
            "KUBECONFIG": str(kubeconfig or self.folder / "no-kubeconfig"),
        }

    def prepare(self) -> None:
        """Rights in the cluster, tables, and what people decide."""
        self.kubectl("apply", "-f", str(ACCESS))
        self.manage("migrate", "--verbosity", "0")
        self.manage("collectstatic", "--noinput", "--verbosity", "0")
        account = {"DJANGO_SUPERUSER_USERNAME": "admin", "DJANGO_SUPERUSER_PASSWORD": self._password}
        self.manage("createsuperuser", "--noinput", "--email", "", **account)
        data = [sys.executable, "-m", "tests.end_to_end.real_data"]
        extra = {"DJANGO_SETTINGS_MODULE": "grid.settings", "PASSWORD": self._password}
        self._run(data, {**self.settings(), **extra})

    def manage(self, *arguments: str, **extra: str) -> None:
        """A command of manage.py that has to succeed."""
        self._run([sys.executable, "manage.py", *arguments], {**self.settings(), **extra})

    def _run(self, command: list[str], environment: Mapping[str, str]) -> None:
        answer = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
        assert answer.returncode == 0, answer.stderr

    # --- Its processes

    def start_nodes(self, *options: str) -> None:
        places = ["--data", str(self.folder / "machine"), "--images", str(IMAGES)]
        command = ["sandbox", "--kubelet-only", "--kubeconfig", str(self.admin), *places, *options]
        self.start("nodes", command, self.settings())
        wait_until(lambda: len(self.ready_nodes()) == 3, 60, "three nodes that are Ready")

    def ready_nodes(self) -> list[str]:
        nodes = json.loads(self.kubectl("get", "nodes", "-o", "json"))["items"]
        return [node["metadata"]["name"] for node in nodes if is_ready(node)]

    def start_controller(self, **extra: str) -> None:
        self.start("controller", ["controller"], {**self.settings(self.write_kubeconfig("controller")), **extra})
        wait_until(lambda: "leading lease=" in self.output("controller"), 30, "a leading controller")

    def start_web(self, **extra: str) -> None:
        command = ["web", "--port", str(self.port)]
        self.start("web", command, {**self.settings(self.write_kubeconfig("web")), **extra})
        wait_until(lambda: self.freshness()[0] == 200, 60, "a web server that follows the cluster")

    def start_proxy(self) -> None:
        command = ["proxy", "--port", str(self.port + 1)]
        self.start("proxy", command, self.settings(self.write_kubeconfig("proxy")))
        ready = f"http://127.0.0.1:{self.port + 1}/__grid__/readyz"
        wait_until(lambda: probe(ready)[0] == 200, 60, "a proxy that is ready")

    def start(self, part: str, command: list[str], environment: Mapping[str, str]) -> None:
        with (self.folder / f"{part}.log").open("ab") as log:
            self._parts[part] = subprocess.Popen(
                [sys.executable, "manage.py", *command], cwd=ROOT, env=environment, stdout=log, stderr=log
            )

    def output(self, part: str) -> str:
        return (self.folder / f"{part}.log").read_text()

    def nothing_was_forbidden(self) -> None:
        """Neither process asked for what it may not have, or stumbled. Refusals around an absence of the API server are excused."""
        for part in ("web", "controller"):
            output = self.output(part)
            assert "forbidden" not in output[self._looked_at.get(part, 0) :].lower(), part
            assert "Traceback" not in output, part

    @contextmanager
    def without_api_server(self) -> Iterator[None]:
        """For as long as the block takes; then everything follows the cluster again."""
        subprocess.run(API_DOWN, shell=True, check=True, timeout=60)
        try:
            wait_until(lambda: self.freshness()[0] == 503, 30, "a web server that says it is behind")
            assert self.readiness()[0] == 200, "its pages are what tells people"
            yield
        finally:
            subprocess.run(API_UP, shell=True, check=True, timeout=60)
        wait_until(lambda: self.freshness()[0] == 200, 60, "a web server that follows again")
        # A starting API server forbids everything until it has read what is allowed; from then on it is ready.
        self._looked_at = {part: len(self.output(part)) for part in ("web", "controller")}

    def readiness(self) -> tuple[int, str]:
        return probe(f"{self.url}/readyz")

    def freshness(self) -> tuple[int, str]:
        return probe(f"{self.url}/freshz")

    def stop(self, part: str) -> None:
        process = self._parts.pop(part, None)
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise

    def allow_demand(self) -> None:
        """What deploy/external-metrics.yaml says, with this machine's loopback in place of a Service's pods."""
        objects = list(yaml.safe_load_all(DEMAND.read_text()))
        next(manifest for manifest in objects if manifest["kind"] == "Service")["spec"] = {
            "type": "ExternalName",
            "externalName": "localhost",
        }
        adapted = self.folder / "external-metrics.yaml"
        adapted.write_text(yaml.safe_dump_all(objects))
        self.kubectl("apply", "-f", str(adapted))

    def demand_settings(self) -> dict[str, str]:
        """Of the web process and the controller."""
        return {
            "GRID_DEMAND_PORT": str(self.demand_port),
            "GRID_DEMAND_SERVICE": f"demand.{SYSTEM_NAMESPACE}:{self.demand_port}",
            "GRID_DEMAND_ADDRESS": "127.0.0.1",
        }

    def demand_is_registered(self) -> bool:
        return self.try_kubectl("get", "--raw", "/apis/external.metrics.k8s.io/v1beta1").returncode == 0

    def clean_up(self) -> None:
        """Ends everything and leaves the cluster as it was found: executions first, while there are nodes to end them."""
        wait = ("--wait", "--timeout=60s")
        with ExitStack() as ending:  # the last comes first; each whatever became of the others
            ending.callback(self.try_kubectl, "delete", "nodes", "--all")
            ending.callback(self.stop, "nodes")
            ending.callback(self.try_kubectl, "delete", "-f", str(ACCESS), *wait)
            for kind in ("persistentvolumeclaims", "pods", "deployments"):
                ending.callback(self.try_kubectl, "delete", kind, "--all", "-n", NAMESPACE, *wait)
            ending.callback(self.stop, "controller")
            ending.callback(self.stop, "web")
            ending.callback(self.stop, "proxy")
            # The registration goes with it: an API that nobody serves keeps namespaces from being deleted.
            ending.callback(self.try_kubectl, "delete", "-f", str(DEMAND), "--ignore-not-found", *wait)


G = TypeVar("G", bound=RealGrid)


def cluster_of_its_own(folder: Path) -> AbstractContextManager[RealGrid]:
    """Nothing is prepared yet; the cluster is left as it was found."""
    return cluster_of(RealGrid, folder)


@contextmanager
def cluster_of(kind: type[G], folder: Path) -> Iterator[G]:
    grid = kind(folder, Path(ADMIN), os.environ.get("REAL_DATABASE_URL", ""))
    grid.wait_until_alone(NAMESPACE, SYSTEM_NAMESPACE)
    try:
        yield grid
    finally:
        grid.clean_up()


def probe(url: str, headers: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Status and text of an answer; 0 and the reason while there is none."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=dict(headers or {})), timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError as error:
        return 0, str(error)


def is_ready(thing: Mapping[str, Any]) -> bool:
    """A node or a pod."""
    conditions = thing["status"].get("conditions") or ()
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
