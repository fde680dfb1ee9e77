"""Support bundles: what is in them, what never is, and what they say when something cannot be read."""

import asyncio
import io
import zipfile
from typing import Any

import msgspec
import pytest

from dashboard.support.views import support, supportzip
from dashboard.support.views.supportzip import whole_lines
from grid.edge import textwork
from grid.edge.textwork import TextTooLong
from grid.executions.launchsettings import launch_settings
from grid.executions.spec import serialize_spec
from grid.kube.resources import EVENTS, NODES, PODS
from grid.models import (
    AuditEntry,
    ClusterSample,
    Execution,
    ExecutionLog,
    PlatformReport,
    PoolSample,
    RunMetric,
    StoredSecret,
    User,
)
from grid.models.dataplane import LOCAL
from grid.platformhealth.facts import Light
from grid.platformhealth.versions import VersionLine
from grid.runtime import Runtime
from grid.secrets import storedsecrets
from tests.conftest import People, client_of
from tests.executions.executing import make_execution, make_project, pod_of, read_executions
from tests.support.builders import MOMENT, NAMESPACE, container_status, event, node
from tests.support.cluster import FakeCluster
from tests.support.frozen import write_frozen
from tests.support.runtime import fill
from tests.support.textwork import FailingWorkers

pytestmark = pytest.mark.django_db(transaction=True)
PLANTED = "swordfish-42"


@pytest.fixture
def running(people: People, cluster: FakeCluster, runtime: Runtime) -> Execution:
    """The owner's, with a secret that its variables, arguments, annotations and log have, too."""
    project = make_project(people.owner, people.teammate)
    execution = make_execution(people.owner, project, started_at=MOMENT, node_name="node-a")
    pod = pod_of(
        execution.pk,
        name=execution.object_name,
        node="node-a",
        phase="Running",
        ready=True,
        statuses=[container_status(ready=True, restarts=1)],
        annotations={"note": f"https://bob:{PLANTED}@git.example/"},
    )
    program = pod["spec"]["containers"][0]
    program["env"] = [{"name": "DATABASE", "value": PLANTED}]
    program["args"] = ["serve", f"--password={PLANTED}"]
    cluster.put(PODS, pod)
    cluster.set_log(execution.object_name, ["begun", f"password={PLANTED}"], namespace=NAMESPACE, container="run")
    cluster.put(NODES, node("node-a"))
    fill(runtime, cluster)
    read_executions(runtime)
    return execution


def bundle(person: User, path: str) -> dict[str, str]:
    """The files of a downloaded bundle by name."""
    answer: Any = client_of(person).post(path)
    assert answer.status_code == 200
    assert answer["Content-Type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(answer.content)) as opened:
        return {name: opened.read(name).decode() for name in opened.namelist()}


def test_execution_bundle_has_its_pods_and_no_secret(people: People, running: Execution) -> None:
    files = bundle(people.owner, f"/executions/{running.pk}/support/")
    pod = f"pods/{running.object_name}"
    assert {f"{pod}/pod.yaml", f"{pod}/describe.txt", f"{pod}/run.log", "history.txt", "versions.txt"} <= files.keys()
    assert "begun" in files[f"{pod}/run.log"]
    assert f"Name:             {running.object_name}" in files[f"{pod}/describe.txt"]
    assert "DATABASE" in files[f"{pod}/pod.yaml"]
    assert not [name for name, text in files.items() if PLANTED in text]
    assert f"{pod}/run.log: the container's log" in files["CONTENTS.txt"]
    (entry,) = AuditEntry.objects.filter(action="downloaded")
    assert (entry.actor_name, entry.object_id) == ("alice", running.pk)


def test_stored_secret_is_redacted_wherever_printed(people: People, running: Execution, cluster: FakeCluster) -> None:
    secret = storedsecrets.put(
        by=people.owner,
        owner=people.owner,
        project=None,
        name="KEY",
        is_file=False,
        value="no pattern knows this",
        now=MOMENT,
    )
    serialize_spec(running, central=launch_settings(), secrets=[secret])
    write_frozen(running, spec=running.spec)
    lines = ["it printed no pattern knows this"]
    cluster.set_log(running.object_name, lines, namespace=NAMESPACE, container="run")
    files = bundle(people.owner, f"/executions/{running.pk}/support/")
    assert not [name for name, text in files.items() if "no pattern knows this" in text]


def test_cut_line_is_dropped_entirely() -> None:
    text = "password=swordfish-42-rest\nsecond\nthird"
    assert whole_lines(text, 22, keeps_end=True) == "second\nthird"
    assert whole_lines(text, 30, keeps_end=False) == "password=swordfish-42-rest"
    assert whole_lines("x" * 50, 20, keeps_end=True) == ""
    assert whole_lines(text, 500, keeps_end=True) == text


def test_a_cluster_that_hangs_costs_nothing_that_is_ours(
    people: People, running: Execution, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang(*_: Any, **__: Any) -> Any:
        await asyncio.sleep(3600)

    monkeypatch.setattr(supportzip, "SECONDS", 1.0)
    monkeypatch.setattr(support, "SECONDS", 0.1)
    monkeypatch.setattr(cluster, "get", hang)
    ExecutionLog.objects.create(execution=running, text="the end that was kept\n")
    files = bundle(people.owner, f"/executions/{running.pk}/support/")
    assert files["log.txt"] == "the end that was kept\n"
    assert "versions.txt" in files
    assert "pod.yaml: the pod. The cluster does not answer." in files["CONTENTS.txt"]


def test_missing_secret_does_not_unhide_the_others(people: People, running: Execution) -> None:
    ids = []
    for name, value in (("GONE", "first-value"), ("KEPT", "second-value")):
        secret = storedsecrets.put(
            by=people.owner, owner=people.owner, project=None, name=name, is_file=False, value=value, now=MOMENT
        )
        ids.append(secret.pk)
    StoredSecret.objects.filter(name="GONE").delete()
    assert storedsecrets.readable_values(ids) == ["second-value"]


def test_bundle_has_measurements_and_events_of_its_objects(
    people: People, running: Execution, cluster: FakeCluster, runtime: Runtime
) -> None:
    claim = {
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": f"{running.object_name}-files", "namespace": NAMESPACE},
    }
    other = {"kind": "Pod", "metadata": {"name": "workspace-anothers", "namespace": NAMESPACE}}
    for name, about in (("slow", claim), ("else", other)):
        cluster.put(EVENTS, event(name, about=about, reason="FailedBinding", message=f"password={PLANTED}"))
    fill(runtime, cluster)
    ClusterSample.objects.create(execution=running, at=MOMENT, ready=2, wanted=3)
    values = {"points": [[1, 1.0, 0.5]], "count": 1, "last": 0.5, "lowest": 0.5, "highest": 0.5}
    RunMetric.objects.create(execution=running, name="loss", at=MOMENT, **values)
    files = bundle(people.owner, f"/executions/{running.pk}/support/")
    assert "loss,1.0,0.5" in files["metrics.csv"]
    assert f"{MOMENT.isoformat()},2,3," in files["workers.csv"]
    assert f"PersistentVolumeClaim {NAMESPACE}/{running.object_name}-files" in files["events.csv"]
    assert "workspace-anothers" not in files["events.csv"]
    assert PLANTED not in files["events.csv"]


def test_platform_bundle_shows_settings_without_secrets(people: People, running: Execution) -> None:
    PlatformReport.objects.create(
        data_plane=LOCAL,
        checked_at=MOMENT,
        versions=msgspec.to_builtins([VersionLine("Kubernetes", "ok", "The cluster is v1.36.0.")]),
        lights=msgspec.to_builtins([Light("dns", "DNS", "problem", "No name resolves.")]),
    )
    amounts = [field.name for field in PoolSample._meta.concrete_fields if field.name not in ("id", "pool", "minute")]
    PoolSample.objects.create(pool="gpu", minute=29_400_000, **dict.fromkeys(amounts, 4))
    files = bundle(people.admin, "/overview/support/")
    assert "SECRET_KEY is set" in files["configuration.txt"]
    assert not [name for name, text in files.items() if "tests-only" in text]
    assert '"pods": 1' in files["health.json"]
    assert "nodes/node-a.txt" in files
    assert "Kubernetes: The cluster is v1.36.0." in files["platform.txt"]
    assert "DNS (problem): No name resolves." in files["platform.txt"]
    assert "gpu,29400000,4," in files["pools.csv"]
    assert AuditEntry.objects.filter(action="downloaded", actor_name="ada-admin").count() == 1


def test_slow_text_is_missing_with_reason(people: People, running: Execution, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(textwork, "workers", FailingWorkers(TextTooLong()))
    files = bundle(people.owner, f"/executions/{running.pk}/support/")
    assert list(files) == ["CONTENTS.txt"]
    assert "run.log: the container's log. This text takes too long to read here." in files["CONTENTS.txt"]
    assert "pod.yaml: the pod. This text takes too long to read here." in files["CONTENTS.txt"]
