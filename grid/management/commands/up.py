"""Everything on one machine: embedded cluster, controller, web server, proxy and Prometheus, with demo data on the first run."""

import contextlib
import fcntl
import json
import logging
import os
import secrets
import shutil
import signal
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError, InterfaceError, connection
from django.db.migrations.executor import MigrationExecutor

from grid.configuration import NAMESPACE, UNNEEDED_SECONDS
from grid.management.commands.web import listen
from grid.management.demo import create_demo_data, new_accounts
from grid.management.demoprometheus import DemoPrometheus, chosen_prometheus
from grid.management.neighbours import reachable
from grid.management.supervisor import StartFailed, SupervisedProgram, Supervisor, end_leftovers
from grid.management.varfiles import refuse_damage, refuse_former_database
from grid.models import ConfigRecord, Environment
from grid.sandbox.needs import SYSTEM_PATH
from grid.sandbox.population import wrong_size

_HOST = "127.0.0.1"


class Command(BaseCommand):
    """Runs until Ctrl-C; everything that it writes is under var/."""

    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--port", type=int, default=8000, help="port of the dashboard; the next seven are used too")
        parser.add_argument(
            "--node-idle-seconds", type=int, default=60, help="how long a node may be unneeded before it is removed"
        )

        parser.add_argument("--began", type=float, help="when the whole start began, in seconds of the Unix epoch")
        parser.add_argument("--nodes", type=int, default=0, help="show this many simulated nodes, too")
        parser.add_argument("--pods", type=int, default=0, help="with this many pods of executions on them")
        parser.add_argument("--churn", type=float, default=0.0, help="and this many changes of them a second")
        parser.add_argument(
            "--without-native-sidecars", action="store_true", help="have a cluster like Kubernetes before 1.29"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.DEMO:
            raise CommandError("This is the demo mode with printed passwords: run it as `make run`.")
        if sys.platform != "linux":
            raise CommandError(
                "The embedded cluster needs Linux; elsewhere use a cluster of yours: docs/installation.md."
            )
        if problem := wrong_size(nodes=options["nodes"], pods=options["pods"], churn=options["churn"]):
            raise CommandError(problem)
        if options["pods"] and not options["nodes"]:
            raise CommandError("--pods needs --nodes: they are on these nodes and on no others.")
        began: float = options["began"] or time.time()
        var: Path = settings.VAR_DIR
        port: int = options["port"]
        logging.getLogger("django.db").setLevel(logging.WARNING)
        refuse_damage(var)
        keep_private(var)
        with _only_one(var), _troubles_of(var):
            for name in end_leftovers(var / "run" / "processes.json"):
                self.stdout.write(f"Ended the {name} that an earlier run left behind.")
            for taken in range(port, port + 4):
                _check_free(taken)
            self._prepare_database(var, node_idle_seconds=options["node_idle_seconds"])
            supervisor = Supervisor(var / "run" / "processes.json")
            for name in ("SIGINT", "SIGTERM", "SIGHUP"):
                signal.signal(getattr(signal, name), lambda *_: supervisor.request_stop())
            try:
                prometheus = self._start_all(supervisor, var, port, options)
                if not supervisor.is_stopping:
                    self._say_hello(var, port, prometheus, time.time() - began)
                supervisor.watch()
            except StartFailed as error:
                raise CommandError(str(error)) from error
            finally:
                self.stdout.write("Stopping …")
                supervisor.stop()
                self.stdout.write("Stopped. Tiers, history and files are kept in var/ for the next start.")

    def _start_all(self, supervisor: Supervisor, var: Path, port: int, options: Mapping[str, Any]) -> DemoPrometheus:
        """Start every program and return which Prometheus is among them. Raise StartFailed."""
        population = [f"--{name}={options[name]}" for name in ("nodes", "pods", "churn") if options["nodes"]]
        if not _front_image():
            self._say(
                "nginx is not installed (Debian: nginx-light), so workspaces and apps have none in front: "
                "the proxy alone guards them."
            )
        prometheus = chosen_prometheus(port + 4, os.environ, nodes=options["nodes"], is_free=_is_free)
        if prometheus.absent:
            self._say(prometheus.absent)
        self._say("Starting the embedded cluster, the web server, the proxy and the controller …")
        old = ["--without-native-sidecars"] if options["without_native_sidecars"] else []
        cluster = [*old, f"--unneeded-seconds={options['node_idle_seconds']}", *population]
        supervisor.start(*_programs(var, port, cluster, prometheus, is_populated=bool(population)))
        if not prometheus.port or supervisor.is_stopping:
            return prometheus
        return self._start_prometheus(supervisor, prometheus, var)

    def _prepare_database(self, var: Path, *, node_idle_seconds: int) -> None:
        refuse_former_database()
        executor = MigrationExecutor(connection)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            self._say("Preparing the database …")
            call_command("migrate", verbosity=0)
        accounts = new_accounts()
        if accounts:
            _write_private(var / "demo-users.json", json.dumps([asdict(a) for a in accounts], indent=2) + "\n")
            create_demo_data(accounts)
        # The pages predict what the embedded autoscaler will do, so they need its setting.
        ConfigRecord.objects.update_or_create(
            namespace=NAMESPACE,
            key=UNNEEDED_SECONDS.key,
            defaults={"value": str(node_idle_seconds), "updated_by": "make run"},
        )
        connection.close()

    def _start_prometheus(self, supervisor: Supervisor, prometheus: DemoPrometheus, var: Path) -> DemoPrometheus:
        try:
            supervisor.start(prometheus.program(var, dict(os.environ)))
        except OSError as error:
            self._say(f"Prometheus is not started, so there are no charts of use over time: {error.strerror or error}.")
            return DemoPrometheus()
        return prometheus

    def _say_hello(self, var: Path, port: int, prometheus: DemoPrometheus, seconds: float) -> None:
        self.stdout.write(f"\nCompute Grid is up after {seconds:.1f} s. Open http://{_HOST}:{port}/ and log in as")
        passwords = var / "demo-users.json"
        for account in json.loads(passwords.read_text()) if passwords.exists() else ():
            self.stdout.write(f"  {account['username']:<10} {account['password']:<14} {account['role']}")
        if not passwords.exists():
            self.stdout.write(f"  whom you know: {passwords}, which holds the first passwords, is gone.")
        if prometheus.port:
            self.stdout.write(f"Prometheus, for charts of use over time: {prometheus.url}/")
        self.stdout.write(f"kubectl works too: export KUBECONFIG={var / 'kubeconfig'}")
        self.stdout.write(reachable(list(Environment.objects.all()), has_front=bool(_front_image())))
        connection.close()
        self._say("Stop with Ctrl-C.")

    def _say(self, sentence: str) -> None:
        self.stdout.write(sentence)
        self.stdout.flush()  # also into a file or a pipe, where somebody waits for it


def keep_private(var: Path) -> None:
    """Make what this process and its programs write from now on, and the existing database, readable by their user alone.

    The folder itself stays as it is: it may be one that others need.
    """
    os.umask(0o077)
    for file in var.glob("grid.sqlite3*"):
        file.chmod(0o600)


@contextlib.contextmanager
def _only_one(var: Path) -> Iterator[None]:
    """Hold the lock of this folder; the kernel frees it when the process ends, however it ends."""
    try:
        (var / "run").mkdir(parents=True, exist_ok=True)
        lock = (var / "run" / "lock").open("a")
    except OSError as error:
        raise CommandError(f"Cannot write to {var}: {error.strerror}. Use a folder that you may write to.") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise CommandError("Compute Grid already runs from this folder. Stop it with Ctrl-C first.") from error
        yield


@contextlib.contextmanager
def _troubles_of(var: Path) -> Iterator[None]:
    """Raise CommandError with one sentence for a database or disk error between the check of both and the end of the start."""
    try:
        yield
    except (DatabaseError, InterfaceError) as error:
        raise CommandError(f"The database of {var} cannot be used: {error}.") from error
    except OSError as error:
        raise CommandError(
            f"Cannot write {error.filename or var}: {error.strerror}. Nothing is left half-written."
        ) from error


def _check_free(port: int) -> None:
    if not _is_free(port):
        raise CommandError(
            f"Port {port} is in use by another program: stop that one, or choose others: make run PORT=8100."
        )


def _is_free(port: int) -> bool:
    try:
        listen(_HOST, port).close()
    except (CommandError, OverflowError):  # the latter: no port has such a number
        return False
    return True


def _front_image() -> str:
    """Return the image of the nginx in front of workspaces and apps; "" where this machine has no nginx or the environment wants none."""
    has_nginx = shutil.which("nginx", path=f"{os.environ.get('PATH', os.defpath)}:{SYSTEM_PATH}") is not None
    return os.environ.get("GRID_FRONT_IMAGE", "compute-grid/nginx:1") if has_nginx else ""


def _programs(
    var: Path, port: int, of_cluster: Sequence[str], prometheus: DemoPrometheus, *, is_populated: bool
) -> list[SupervisedProgram]:
    common = _environment(var, port)
    cluster_port, kubeconfig = port + 2, var / "kubeconfig"
    kubeconfig.unlink(missing_ok=True)  # the API server writes it once it listens, which signals readiness

    def program(
        name: str, command: list[str], extra: Mapping[str, str], ready: Any, stop_seconds: float
    ) -> SupervisedProgram:
        return SupervisedProgram(
            name=name,
            arguments=[sys.executable, str(settings.BASE_DIR / "manage.py"), *command],
            environment={**common, **extra},
            log=var / "log" / f"{name.replace(' ', '-')}.log",
            is_ready=ready,
            stop_seconds=stop_seconds,
        )

    cluster = ["sandbox", "--data", str(var / "cluster"), "--images", str(settings.IMAGES_DIR)]
    cluster += ["--port", str(cluster_port), "--kubeconfig", str(kubeconfig)]
    cluster += ["--scan-seconds", "5", "--boot-seconds", "6", *of_cluster]
    web, proxy = ["web", "--port", str(port)], ["proxy", "--port", str(port + 1)]
    programs = [
        program("embedded cluster", cluster, {}, kubeconfig.exists, 20.0),
        program(
            "web server",
            web,
            {"GRID_KUBE_CONTEXT": "web", **prometheus.environment("web")},
            lambda: _answers(f"http://{_HOST}:{port}/freshz"),
            6,
        ),
        program(
            "proxy",
            proxy,
            {"GRID_KUBE_CONTEXT": "proxy", **prometheus.environment("proxy")},
            lambda: _answers(f"http://{_HOST}:{port + 1}/__grid__/readyz"),
            6,
        ),
        program(
            "controller",
            ["controller"],
            {"GRID_KUBE_CONTEXT": "controller", **prometheus.environment("controller")},
            lambda: True,
            10.0,
        ),
    ]
    if is_populated:
        simulated = ["record_simulated", "--every", "15"]
        programs.append(program("simulated executions", simulated, {"GRID_KUBE_CONTEXT": "admin"}, lambda: True, 5.0))
    return programs


def _environment(var: Path, port: int) -> dict[str, str]:
    """Return the settings of all programs."""
    return {
        **os.environ,
        "PYTHONUNBUFFERED": "1",
        "GRID_SECRET_KEY": _secret_key(var),
        "GRID_DASHBOARD_ORIGIN": f"http://{_HOST}:{port}",
        "GRID_WORKSPACE_ORIGIN": f"http://localhost:{port + 1}",
        "KUBECONFIG": str(var / "kubeconfig"),
        "GRID_REPOSITORIES": str(var / "cluster" / "machine" / "repositories"),
        "GRID_FRONT_IMAGE": _front_image(),
        "GRID_DEMAND_PORT": str(port + 3),
        "GRID_DEMAND_SERVICE": f"localhost.kube-system:{port + 3}",
        "GRID_DEMAND_ADDRESS": _HOST,
    }


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _secret_key(var: Path) -> str:
    path = var / "secret-key"
    if not path.exists():
        _write_private(path, secrets.token_urlsafe(48))
    return path.read_text().strip()


def _write_private(path: Path, text: str) -> None:
    """Write the whole file, readable by its user alone, or nothing."""
    unfinished = path.with_name(f"{path.name}.unfinished")
    try:
        unfinished.touch(mode=0o600)
        unfinished.write_text(text)
        unfinished.replace(path)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise
