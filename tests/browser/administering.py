"""What the tests of the admin pages put on the stage: a catalogue, a cluster to fit it to, the demonstration, and the audit log."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth.models import Group

from grid import configuration as centralconfig
from grid.audit.sealing import seal
from grid.environments import revisions
from grid.environments.revisions import BuildProgress
from grid.executions.spec import tier_spec
from grid.kube.resources import CONFIG_MAPS, NODES
from grid.models import (
    AuditChain,
    AuditEntry,
    ConfigRecord,
    Environment,
    Execution,
    HardwareTier,
    Job,
    JobRun,
    Project,
    StartUp,
    User,
    Workspace,
)
from tests.browser.server import Stage
from tests.support import builders
from tests.support.cluster import POPULATION
from tests.support.frozen import on_tier
from tests.support.settings import change

AUTOSCALER = """
nodeGroups:
- {name: default, health: {cloudProviderTarget: 2, minSize: 1, maxSize: 5}}
- {name: default-gpu, health: {cloudProviderTarget: 0, minSize: 0, maxSize: 2}}
"""
_TIERS: tuple[dict[str, Any], ...] = (
    {"id": "small", "name": "Small", "description": "Notebooks and light analysis.", "cores": "1", "memory": "4Gi",
     "cost_per_hour": "0.05", "is_default": True},
    {"id": "medium", "name": "Medium", "description": "Feature engineering and model training on CPUs.",
     "cores": "3500m", "memory": "14Gi", "cores_limit": "7", "memory_limit": "16Gi", "cost_per_hour": "0.19"},
    {"id": "large", "name": "Large", "description": "A whole machine: 7 cores, shared memory for data loaders.",
     "cores": "7", "memory": "28Gi", "shared_memory": "4Gi", "cost_per_hour": "0.38", "maximum_simultaneous": 4},
    {"id": "gpu", "name": "GPU", "description": "One GPU; its machine is started when you need it.",
     "node_pool": "default-gpu", "cores": "3", "memory": "12Gi", "gpus": 1, "shared_memory": "2Gi",
     "cost_per_hour": "0.53", "kinds": ["workspace", "job"],
     "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]},
    {"id": "whale", "name": "Whale", "cores": "64", "memory": "512Gi", "cost_per_hour": "3.2", "is_visible": False},
    {"id": "old", "name": "Old small", "cores": "500m", "memory": "2Gi", "is_archived": True},
)  # fmt: skip
COMMAND = (
    *("jupyter", "lab", "--no-browser", "--allow-root", "--ip=$(POD_IP)", "--port={port}"),
    *("--ServerApp.base_url={base_url}", "--ServerApp.allow_remote_access=True", "--ServerApp.trust_xheaders=True"),
    *("--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate", "--LabApp.news_url=None"),
)
_LONG_PATH = "/archive/2026/data.parquet"
LONG = "a-name-that-is-as-long-as-names-may-become"


def forget_all() -> None:
    """No execution, and nothing that an admin makes."""
    for model in (
        Execution,
        StartUp,
        JobRun,
        Job,
        Workspace,
        Environment,
        HardwareTier,
        Project,
        AuditEntry,
        ConfigRecord,
    ):
        model._default_manager.all().delete()


def _fill() -> None:
    forget_all()
    alice, bob = User.objects.get(username="alice"), User.objects.get(username="bob")
    vision = Group.objects.get_or_create(name="vision team")[0]
    Group.objects.get_or_create(name="marketing analytics")
    for tier in _TIERS:
        HardwareTier.objects.create(**{"node_pool": "default", **tier})
    HardwareTier.objects.get(pk="gpu").groups.add(vision)
    lab = Environment.objects.create(
        id="jupyterlab", name="JupyterLab", description="JupyterLab 4 with Python 3.", port=8888,
        image="compute-grid/jupyterlab:4.6", command=list(COMMAND), variables={"MODE": "fast", "EMPTY": ""},
    )  # fmt: skip
    _revise(lab)
    Environment.objects.create(id="script", name="Python script", kind="job", image="python:3.11", is_visible=False)
    churn = Project.objects.start(id="churn", name="Customer churn", description="Who leaves, and why.", owner=alice)
    churn.members.add(bob, through_defaults={"role": "contributor"})
    Project.objects.start(id="vision", name="Product photos", owner=bob, volume_size="200Gi")
    small = HardwareTier.objects.get(pk="small")
    for cores in ("1", "1", "16"):  # the last was launched when the tier and the nodes were larger
        Execution.objects.create(
            kind="workspace",
            title=f"Churn on {cores} cores",
            owner=alice,
            project=churn,
            environment=lab,
            state="running",
            spec={"tier": {**msgspec.to_builtins(tier_spec(small)), "cores": cores}},
            **on_tier(small),
        )


def _revise(lab: Environment) -> None:
    """One revision that is deprecated, one whose build has failed, and the current one."""
    by: dict[str, Any] = {"by": "ada-admin", "now": datetime.now(UTC)}
    revisions.make_image(
        lab.pk, f"registry.example.com/{'very-long-' * 8}name/jupyterlab:4.7", note="With a newer kernel", **by
    )
    built = revisions.make_built(lab.pk, 2, "polars==1.9.0\npyarrow>=18", note="", **by)
    log = "Collecting polars==1.9.0\n  Downloading polars.whl (30 MB)\nERROR: No matching distribution found for pyarrow>=18"
    failed = BuildProgress("a", "failed", "Installing it failed: No matching distribution found for pyarrow>=18.", log)
    revisions.record_progress(built.pk, failed, now=datetime.now(UTC))
    revisions.deprecate(lab.pk, 1, because="Its kernel has a bug.")
    lab.refresh_from_db()


async def catalogues(stage: Stage) -> None:
    """Tiers of each sort (one that fits no node, one whose pool is empty, an archived one), environments, projects."""
    await sync_to_async(_fill)()
    for name in ("default-7f4k2", "default-9x2mc"):
        stage.cluster.put(NODES, builders.node(name, cpu="8", memory="32Gi", created=datetime.now(UTC)))
    data = {"status": AUTOSCALER}
    stage.cluster.put(CONFIG_MAPS, builders.config_map("cluster-autoscaler-status", data, namespace="kube-system"))


def _change_settings() -> None:
    admin = User.objects.get(username="ada-admin")
    drain = centralconfig.FRAMEWORK_SETTINGS["dask"]["drain_seconds"]
    for setting, text in {
        centralconfig.GLOBAL_QUEUE_LIMIT: "500",
        centralconfig.SESSION_IDLE: "7200",
        drain: "120",
    }.items():
        change(setting.key, text, actor=admin)
    Execution.objects.update(state="deploying", state_since=datetime.now(UTC) - timedelta(minutes=20))


async def changed_settings(stage: Stage) -> None:
    """The catalogues, some changed settings, and an execution that waits for its node."""
    await catalogues(stage)
    await sync_to_async(_change_settings)()


def _fill_people() -> None:
    User.objects.filter(username="nina").delete()
    long = User.objects.get_or_create(username="hubert-wolfeschlegel")[0]
    User.objects.filter(pk=long.pk).update(is_active=False, last_login=datetime(2025, 1, 1, tzinfo=UTC))


async def people(stage: Stage) -> None:
    """A closed account with a long name; whoever an earlier test invited is gone."""
    await sync_to_async(_fill_people)()


async def begin_demonstration(stage: Stage) -> None:
    settings.DEMO, stage.cluster.sandbox = True, POPULATION


async def end_demonstration(stage: Stage) -> None:
    settings.DEMO, stage.cluster.sandbox = False, None


def _write_entries() -> None:
    _remove_entries()  # what earlier tests of this stage did
    now = datetime.now(UTC)
    rows = (
        ("ada-admin", "changed", "hardwaretier", "small", "Small", {"cores": ["1", "2"], "kinds": [["job"], ["app"]]}),
        ("ada-admin", "created", "environment", "py", "Python 3.12", {"name": [None, "Python 3.12"]}),
        (LONG, "changed", "project", "churn", "Customer churn", {"f": ["", _LONG_PATH]}),
        ("ada-admin", "unlocked", "login", "eve", "eve at 203.0.113.9", {"failures": [12, 0]}),
    )
    for number in range(60):
        columns = ("actor_name", "action", "object_type", "object_id", "object_name", "changes")
        entry = dict(zip(columns, rows[number % len(rows)], strict=True))
        AuditEntry.objects.create(at=now - timedelta(minutes=number), **entry)
        if number == 58:
            while seal(now):
                pass


def _remove_entries() -> None:
    AuditEntry.objects.all().delete()
    AuditChain.objects.all().delete()


async def audit_entries(stage: Stage) -> None:
    await sync_to_async(_write_entries)()


async def no_audit_entries(stage: Stage) -> None:
    await sync_to_async(_remove_entries)()
