"""The demo: its data is valid, complete and made once, and whether `make run` starts a Prometheus, and how."""

import base64
import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import IntegrityError, transaction
from pytest_django.fixtures import Settings

from grid.management.commands.up import NODES_AT_MOST, DemoPrometheus, chosen_prometheus, keep_private, reachable
from grid.management.demo import CODE_SERVER_COMMAND, JUPYTERLAB_COMMAND, DemoAccount, create_demo_data, new_accounts
from grid.models import Environment, Framework, HardwareTier, Project, User
from grid.sandbox.images import ImageCatalogue
from tests.support.prometheus import PROMTOOL

LAB = Environment(name="JupyterLab", kind="workspace", port=8888, command=JUPYTERLAB_COMMAND)
CODE = Environment(name="VS Code", kind="workspace", port=8080, command=CODE_SERVER_COMMAND)
OLD = Environment(name="Old lab", kind="workspace", port=8888, command=["lab", "--ip=$(POD_IP)"])
SCRIPT = Environment(name="Script", kind="job", command=["python", "main.py"])
CLUSTERS = [Environment(name=name, kind="cluster", frameworks={name: "1"}) for name in ("spark", "dask")]
OWN = "every port that people's own programs open."


@pytest.fixture
def accounts(db: None) -> list[DemoAccount]:
    accounts = new_accounts()
    create_demo_data(accounts)
    return accounts


@pytest.fixture
def environments(accounts: list[DemoAccount]) -> list[Environment]:
    return list(Environment.objects.order_by("kind"))


def test_demo_data_is_valid_and_has_its_images(environments: list[Environment]) -> None:
    assert {environment.kind for environment in environments} == {"workspace", "job", "cluster"}
    assert {environment.image for environment in environments} <= set(ImageCatalogue().names())
    for thing in [*HardwareTier.objects.all(), *environments, *Project.objects.all()]:
        thing.full_clean()


def test_demo_editor_keeps_workspace_trust_enabled(environments: list[Environment]) -> None:
    commands = [environment.command for environment in environments if "code-server" in environment.command]
    assert commands
    assert not any("--disable-workspace-trust" in command for command in commands)


@pytest.mark.parametrize("framework", Framework.values)
def test_demo_framework_environments_share_the_version_in_images(
    environments: list[Environment], framework: str
) -> None:
    serving = [environment for environment in environments if framework in environment.frameworks]
    assert [environment.kind for environment in serving] == ["cluster", "job", "workspace"]
    (version,) = {environment.frameworks[framework] for environment in serving}
    (image,) = {ImageCatalogue().find(environment.image) for environment in serving}
    assert image is not None and any(f"=={version}" in requirement for requirement in image.requirements)


def test_a_second_start_changes_nothing(accounts: list[DemoAccount]) -> None:
    assert User.objects.count() == len(accounts) == 4
    assert new_accounts() == []


def test_failed_start_leaves_no_accounts_without_passwords(db: None) -> None:
    HardwareTier.objects.create(id="small", name="In the way", node_pool="default", cores="1", memory="1Gi")
    with pytest.raises(IntegrityError), transaction.atomic():
        create_demo_data(new_accounts())
    assert not User.objects.exists()


def test_each_account_has_a_password_of_its_own(accounts: list[DemoAccount]) -> None:
    assert len({account.password for account in accounts}) == 4
    assert all(User.objects.get(username=a.username).check_password(a.password) for a in accounts)


@pytest.mark.parametrize(("is_demo", "debugs"), [(True, False), (False, True)], ids=["demo", "debugging"])
def test_it_is_not_served_beyond_this_machine(settings: Settings, is_demo: bool, debugs: bool) -> None:
    settings.DEMO, settings.DEBUG = is_demo, debugs
    with pytest.raises(CommandError, match="loopback addresses only"):
        call_command("web", host="0.0.0.0")


def test_all_in_one_command_runs_only_in_demo_mode(settings: Settings) -> None:
    settings.DEMO = False
    with pytest.raises(CommandError, match="make run"):
        call_command("up")


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


@pytest.fixture
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_new_files_are_readable_by_nobody_else(tmp_path: Path, usual_umask: None) -> None:
    keep_private(tmp_path / "not-made-yet")
    folder, file = tmp_path / "log", tmp_path / "web.log"
    folder.mkdir()
    file.touch()
    assert (mode(folder), mode(file)) == (0o700, 0o600)


def test_database_of_earlier_version_is_closed_to_others(tmp_path: Path, usual_umask: None) -> None:
    files = [tmp_path / "grid.sqlite3", tmp_path / "grid.sqlite3-wal", tmp_path / "notes"]
    for file in files:
        file.touch(mode=0o644)
    tmp_path.chmod(0o755)
    keep_private(tmp_path)
    assert [mode(file) for file in files] == [0o600, 0o600, 0o644]
    assert mode(tmp_path) == 0o755


def test_workspaces_on_sockets_are_not_among_what_others_reach() -> None:
    sentence = reachable([LAB, CODE, SCRIPT], has_front=True)
    assert sentence == f"Other users of this machine reach, past our login: {OWN}"


def test_clusters_and_what_listens_on_ports_are_named() -> None:
    archived = Environment(name="Gone", kind="app", port=1024, is_archived=True)
    assert reachable([LAB, OLD, archived, *CLUSTERS], has_front=True) == (
        "Other users of this machine reach, past our login: Dask and Spark clusters; "
        f"the web servers of Old lab, which listen on a port of their pod; {OWN}"
    )
