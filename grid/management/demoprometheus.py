"""The Prometheus of `make run`, where this machine has one: for charts of use over time. Everything else works without."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from grid.management.supervisor import SupervisedProgram
from grid.sandbox.prometheus import installed, prepare

# The embedded API server tells the state of each of them and of all their pods at each scrape: more would slow down what they are there
# to measure.
NODES_AT_MOST = 100
_NAME = "Prometheus"
# The setting that makes each program serve its own metrics, in the order of their ports.
_SETTINGS = {
    "web": "GRID_METRICS_PORT",
    "proxy": "GRID_PROXY_METRICS_PORT",
    "controller": "GRID_CONTROLLER_METRICS_PORT",
}


@dataclass(frozen=True, slots=True)
class DemoPrometheus:
    """What is to be started: on which port, and where it finds our programs' metrics. Without a port there is none, and `absent` says why
    and what to do; it is empty for whoever has said that there is another one or none."""

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
        return SupervisedProgram(_NAME, command, environment, log, lambda: True, stop_seconds=10.0, is_optional=True)


def chosen_prometheus(
    first_port: int, environment: Mapping[str, str], *, nodes: int, is_free: Callable[[int], bool]
) -> DemoPrometheus:
    """Return what is to be started on the four ports from the first, with this many simulated nodes."""
    if "GRID_PROMETHEUS_URL" in environment:
        return DemoPrometheus()
    if not installed():
        return DemoPrometheus(
            absent="Prometheus is not installed, so there are no charts of use over time. Install it (Debian: "
            "apt-get install prometheus) and start again to have them."
        )
    if nodes > NODES_AT_MOST:
        return DemoPrometheus(
            absent=f"With more than {NODES_AT_MOST} simulated nodes Prometheus is not started: no charts of use over time."
        )
    own = {
        name: int(environment.get(setting, first_port + place))
        for place, (name, setting) in enumerate(_SETTINGS.items(), start=1)
    }
    own = {name: port for name, port in own.items() if port}  # 0 is the user's word for none
    for port in (first_port, *own.values()):
        if not is_free(port):
            return DemoPrometheus(
                absent=f"Port {port} is in use by another program, so Prometheus is not started and there are no charts of "
                "use over time. Stop that one, or choose others: make run PORT=8100."
            )
    return DemoPrometheus(first_port, own)
