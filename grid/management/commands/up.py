"""Everything on one machine: embedded cluster, controller, web server, proxy and Prometheus, with demo data on the first run."""

import contextlib
import fcntl
import json
import logging
import os
import random
import secrets
import shutil
import signal
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError, InterfaceError, connection
from django.db.migrations.executor import MigrationExecutor

from grid.configuration import NAMESPACE, UNNEEDED_SECONDS
from grid.core.wording import listed
from grid.executions.listening import names_socket
from grid.management.commands.web import listen
from grid.management.demo import create_demo_data, new_accounts
from grid.management.demopast import create_past
from grid.management.supervisor import StartFailed, SupervisedProgram, Supervisor, end_leftovers
from grid.management.varfiles import refuse_damage, refuse_former_database
from grid.models import ConfigRecord, Environment, Framework
from grid.models.environment import Kind
from grid.sandbox.needs import SYSTEM_PATH
from grid.sandbox.population import wrong_size
from grid.sandbox.prometheus import installed, prepare

_HOST = "127.0.0.1"
_MOST = 4  # each is one thread of Python; the cluster and people's programs need cores, too
# The embedded API server tells the state of each of them and of all their pods at each scrape: more would slow down what they are there
# to measure.
NODES_AT_MOST = 100
# The setting that makes each program serve its own metrics, in the order of their ports.
_SETTINGS = {
    "web": "GRID_METRICS_PORT",
    "proxy": "GRID_PROXY_METRICS_PORT",
    "controller": "GRID_CONTROLLER_METRICS_PORT",
}


@dataclass(frozen=True, slots=True)
class DemoPrometheus:
    """Its port, and those of our programs' metrics. Without a port there is none; `absent` says why, unless there is another one."""

    port: int = 0
    own: Mapping[str, int] = field(default_factory=dict)
    absent: str = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}" if self.port else ""

    def environment(self, program: str) -> dict[str, str]:
        """Return the settings of one of our programs: where it serves its metrics, and of the web process where it asks."""
        if not self.port:
            return {}
        served = {_SETTINGS[program]: str(self.own[program])} if program in self.own else {}
        return {**served, "GRID_PROMETHEUS_URL": self.url} if program == "web" else served

    def program(self, var: Path, environment: Mapping[str, str]) -> SupervisedProgram:
        """Write its configuration, for which the API server must have written the kubeconfig, and return the program. Raise OSError."""
        command = prepare(var / "prometheus", var / "kubeconfig", self.port, own=self.own)
        log = var / "log" / "prometheus.log"
        return SupervisedProgram(
            "Prometheus", command, environment, log, lambda: True, stop_seconds=10.0, is_optional=True
        )


class Command(BaseCommand):
    """Runs until Ctrl-C; everything that it writes is under var/."""

    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--port", type=int, default=8000, help="port of the dashboard; the next seven are used too")
        parser.add_argument(
            "--node-idle-seconds", type=int, default=60, help="how long a node may be unneeded before it is removed"
        )
        cores = len(os.sched_getaffinity(0))
        for name, what, each, of in (
            ("--webs", "pages", 2, "two cores"),
            ("--proxies", "people's programs", 1, "each core"),
        ):
            words = f"how many processes serve {what}, on one port (default: one for {of}, at most {_MOST})"
            parser.add_argument(name, type=int, default=max(1, min(_MOST, cores // each)), help=words)
        parser.add_argument("--began", type=float, help="when the whole start began, in seconds of the Unix epoch")
        parser.add_argument("--nodes", type=int, default=0, help="show this many simulated nodes, too")
        parser.add_argument("--pods", type=int, default=0, help="with this many pods of executions on them")
        parser.add_argument("--churn", type=float, default=0.0, help="and this many changes of them a second")
        parser.add_argument(
            "--without-past", action="store_true", help="make up no past for the demo at the first start"
        )
        parser.add_argument(
            "--without-native-sidecars", action="store_true", help="have a cluster like Kubernetes before 1.29"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.DEMO:
            raise CommandError("This is the demo mode with printed passwords: run it as `make run`.")
        if sys.platform != "linux":
            needs = "The embedded cluster needs Linux; elsewhere use a cluster of yours: docs/installation.md."
            raise CommandError(needs)
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
            if taken := next((each for each in range(port, port + 4) if not _is_free(each)), 0):
                advice = "stop that one, or choose others: make run PORT=8100."
                raise CommandError(f"Port {taken} is in use by another program: {advice}")
            self._prepare_database(var, options)
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
        programs = _programs(var, port, cluster, prometheus, is_populated=bool(population))
        supervisor.start(
            *programs,
            *_more(programs, "web server", "web", options["webs"]),
            *_more(programs, "proxy", "proxy", options["proxies"]),
        )
        if prometheus.port and not supervisor.is_stopping:
            try:
                supervisor.start(prometheus.program(var, dict(os.environ)))
            except OSError as error:
                why = error.strerror or error
                self._say(f"Prometheus is not started, so there are no charts of use over time: {why}.")
                return DemoPrometheus()
        return prometheus

    def _prepare_database(self, var: Path, options: Mapping[str, Any]) -> None:
        refuse_former_database()
        executor = MigrationExecutor(connection)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            self._say("Preparing the database …")
            call_command("migrate", verbosity=0)
        if accounts := new_accounts():
            _write_private(var / "demo-users.json", json.dumps([asdict(a) for a in accounts], indent=2) + "\n")
            create_demo_data(accounts)
            if not options["without_past"]:
                # Always the same numbers, so that a picture of a demo can be made again.
                create_past(datetime.now(UTC), random.Random(1))
        # The pages predict what the embedded autoscaler will do, so they need its setting.
        values = {"value": str(options["node_idle_seconds"]), "updated_by": "make run"}
        ConfigRecord.objects.update_or_create(namespace=NAMESPACE, key=UNNEEDED_SECONDS.key, defaults=values)
        connection.close()

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
    """Make what this process and its programs write from now on, and the existing database, readable by their user alone. The folder itself
    stays as it is: it may be one that others need."""
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
        place = error.filename or var
        raise CommandError(f"Cannot write {place}: {error.strerror}. Nothing is left half-written.") from error


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
    kubeconfig = var / "kubeconfig"
    kubeconfig.unlink(missing_ok=True)  # the API server writes it once it listens, which signals readiness

    def program(
        name: str, context: str, command: list[str], is_ready: Callable[[], bool], stop_seconds: float
    ) -> SupervisedProgram:
        return SupervisedProgram(
            name=name,
            arguments=[sys.executable, str(settings.BASE_DIR / "manage.py"), *command],
            environment=common | ({"GRID_KUBE_CONTEXT": context} if context else {}) | prometheus.environment(context),
            log=var / "log" / f"{name.replace(' ', '-')}.log",
            is_ready=is_ready,
            stop_seconds=stop_seconds,
        )

    cluster = ["sandbox", "--data", str(var / "cluster"), "--images", str(settings.IMAGES_DIR)]
    cluster += ["--port", str(port + 2), "--kubeconfig", str(kubeconfig)]
    cluster += ["--scan-seconds", "5", "--boot-seconds", "6", *of_cluster]
    web, proxy = ([name, "--port", str(at), "--share-port"] for name, at in (("web", port), ("proxy", port + 1)))
    programs = [
        program("embedded cluster", "", cluster, kubeconfig.exists, 20.0),
        program("web server", "web", web, lambda: _answers(f"http://{_HOST}:{port}/freshz"), 6.0),
        program("proxy", "proxy", proxy, lambda: _answers(f"http://{_HOST}:{port + 1}/__grid__/readyz"), 6.0),
        program("controller", "controller", ["controller"], lambda: True, 10.0),
    ]
    if is_populated:
        simulated = ["record_simulated", "--every", "15"]
        programs.append(program("simulated executions", "admin", simulated, lambda: True, 5.0))
    return programs


def _more(programs: Sequence[SupervisedProgram], name: str, setting: str, count: int) -> list[SupervisedProgram]:
    """Return all but the first of so many on one port. They serve no metrics: their ports would be further ones."""
    first = next(program for program in programs if program.name == name)
    silent = {**first.environment, _SETTINGS[setting]: "0"}
    more = [(f"{name} {number}", first.log.with_stem(f"{first.log.stem}-{number}")) for number in range(2, count + 1)]
    return [replace(first, name=name, log=log, environment=silent, is_optional=True) for name, log in more]


def _environment(var: Path, port: int) -> dict[str, str]:
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
    except OSError:
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


def reachable(environments: Sequence[Environment], *, has_front: bool) -> str:
    """Say what answers others on this machine without our login; a Unix socket with nginx in front does not."""
    offered = [environment for environment in environments if not environment.is_archived]
    clusters = {name for each in offered if each.kind == Kind.CLUSTER for name in each.frameworks}
    listening = [each for each in offered if each.kind in (Kind.WORKSPACE, Kind.APP) and each.port]
    on_ports = [each.name for each in listening if not (has_front and names_socket(each.command))]
    things = ["every port that people's own programs open"]
    if on_ports:
        things.insert(0, f"the web servers of {listed(on_ports)}, which listen on a port of their pod")
    if clusters:
        things.insert(0, f"{listed([label for name, label in Framework.choices if name in clusters])} clusters")
    return f"Other users of this machine reach, past our login: {'; '.join(things)}."


def chosen_prometheus(
    first_port: int, environment: Mapping[str, str], *, nodes: int, is_free: Callable[[int], bool]
) -> DemoPrometheus:
    """Return what is to be started on the four ports from the first, with this many simulated nodes."""
    if "GRID_PROMETHEUS_URL" in environment:
        return DemoPrometheus()
    own = {
        name: port
        for place, (name, setting) in enumerate(_SETTINGS.items(), start=1)
        if (port := int(environment.get(setting, first_port + place)))  # 0 is the user's word for none
    }
    absent = ""
    if not installed():
        absent = (
            "Prometheus is not installed, so there are no charts of use over time. Install it (Debian: "
            "apt-get install prometheus) and start again to have them."
        )
    elif nodes > NODES_AT_MOST:
        absent = (
            f"With more than {NODES_AT_MOST} simulated nodes Prometheus is not started: no charts of use over time."
        )
    elif taken := next((port for port in (first_port, *own.values()) if not is_free(port)), 0):
        absent = (
            f"Port {taken} is in use by another program, so Prometheus is not started and there are no charts of "
            "use over time. Stop that one, or choose others: make run PORT=8100."
        )
    return DemoPrometheus(absent=absent) if absent else DemoPrometheus(first_port, own)
