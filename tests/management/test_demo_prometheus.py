"""Whether `make run` starts a Prometheus, and how."""

import base64
import stat
import subprocess
from pathlib import Path

import pytest
import yaml

from grid.management.commands.up import NODES_AT_MOST, DemoPrometheus, chosen_prometheus
from tests.support.promtool import PROMTOOL


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only Prometheus that is found."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "prometheus"
    program.touch(0o755)
    return program


def chosen(*taken: int, nodes: int = 0, **environment: str) -> DemoPrometheus:
    return chosen_prometheus(8004, environment, nodes=nodes, is_free=lambda port: port not in taken)


def test_missing_prometheus_is_reported_with_install_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    prometheus = chosen()
    assert prometheus.port == 0 and prometheus.environment("web") == {}
    assert "Prometheus is not installed" in prometheus.absent and "no charts of use over time" in prometheus.absent
    assert "apt-get install prometheus" in prometheus.absent


@pytest.mark.usefixtures("installed")
def test_programs_serve_metrics_and_web_knows_prometheus() -> None:
    prometheus = chosen()
    assert prometheus.environment("web") == {
        "GRID_METRICS_PORT": "8005",
        "GRID_PROMETHEUS_URL": "http://127.0.0.1:8004",
    }
    assert prometheus.environment("proxy") == {"GRID_PROXY_METRICS_PORT": "8006"}
    assert prometheus.environment("controller") == {"GRID_CONTROLLER_METRICS_PORT": "8007"}
    own = chosen(GRID_METRICS_PORT="9100", GRID_PROXY_METRICS_PORT="0").own
    assert own == {"web": 9100, "controller": 8007}, "what somebody has set stays; 0 is none"


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("url", ["http://elsewhere:9090", ""], ids=["another one", "none"])
def test_configured_prometheus_prevents_a_second_one(url: str) -> None:
    assert chosen(GRID_PROMETHEUS_URL=url) == DemoPrometheus()


@pytest.mark.usefixtures("installed")
def test_taken_port_or_many_nodes_skip_prometheus_with_reason() -> None:
    assert "Port 8006 is in use" in chosen(8006).absent
    assert "simulated nodes" in chosen(nodes=NODES_AT_MOST + 1).absent
    assert chosen(nodes=NODES_AT_MOST).absent == ""


def test_prometheus_configuration_scrapes_cluster_and_product_privately(installed: Path, tmp_path: Path) -> None:
    cluster = {"server": "https://127.0.0.1:8002", "certificate-authority-data": base64.b64encode(b"CA").decode()}
    text = {
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "web", "user": {"token": "t-web"}}, {"name": "admin", "user": {"token": "t-admin"}}],
        "contexts": [{"name": name, "context": {"cluster": "c", "user": name}} for name in ("web", "admin")],
        "current-context": "admin",
    }
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(text))
    program = chosen().program(tmp_path, {})
    file = tmp_path / "prometheus" / "prometheus.yml"
    assert program.is_optional
    assert {f"--config.file={file}", "--web.listen-address=127.0.0.1:8004"} < set(program.arguments)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    jobs = {job["job_name"]: job for job in yaml.safe_load(file.read_text())["scrape_configs"]}
    assert jobs["cadvisor"]["http_sd_configs"][0]["url"] == "https://127.0.0.1:8002/sandbox/scrape-targets"
    assert {job["authorization"]["credentials"] for job in jobs.values() if "authorization" in job} == {"t-admin"}
    assert jobs["apiserver"]["static_configs"][0]["targets"] == ["127.0.0.1:8002"]
    assert jobs["compute-grid-controller"]["static_configs"][0]["targets"] == ["127.0.0.1:8007"]
    if PROMTOOL is not None:
        subprocess.run([PROMTOOL, "check", "config", str(file)], check=True, capture_output=True, timeout=60)
