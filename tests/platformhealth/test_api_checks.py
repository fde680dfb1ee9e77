"""Checks of the API that an admin asks for: run once, told one by one, and cleaned up, also after a controller that stopped."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from asgiref.sync import async_to_sync, sync_to_async
from django.conf import settings

from grid.core.errors import ClusterUnavailable, NotAllowed, Problem, Rejected
from grid.core.labels import API_CHECK
from grid.executions.context import LaunchTarget
from grid.kube.resources import ACCESS_REVIEWS, CONFIG_MAPS, LEASES, NAMESPACES, PODS, SECRETS
from grid.models import ApiCheckRun, AuditEntry
from grid.platformhealth.apicheckresults import NeededRight
from grid.platformhealth.apichecks import apicheckruns, keeper
from grid.platformhealth.apichecks.checks import CHECKS
from grid.platformhealth.apichecks.keeper import STOPPED, ApiCheckKeeper
from grid.platformhealth.apichecks.running import ApiCheck
from grid.platformhealth.apichecks.scratch import CheckFailed, Scratch, until
from tests.conftest import People
from tests.support.cluster import FakeCluster
from tests.support.golden import assert_golden
from tests.support.shop import NOW

NAMESPACE = "compute-grid"
# The fake has no controller that makes ReplicaSets, and reviews no access.
NO_CONTROLLERS = [check for check in CHECKS if check.key not in ("deployments", "access-review")]
pytestmark = pytest.mark.django_db


async def database(work: Any, /, *args: Any, **kwargs: Any) -> Any:
    return await sync_to_async(work)(*args, **kwargs)


def run_once(cluster: FakeCluster, checks: Sequence[ApiCheck] = NO_CONTROLLERS) -> None:
    target = LaunchTarget("local", NAMESPACE, token=lambda id: "", front_key=lambda id: "")
    api_checks = ApiCheckKeeper(cluster, database, target, clock=lambda: NOW, monotonic=lambda: 0.0, checks=checks)
    async_to_sync(api_checks.run_once)()


def ask(people: People, *, is_shared: bool = False) -> ApiCheckRun:
    return apicheckruns.ask("local", NAMESPACE, people.admin, is_shared=is_shared, now=NOW)


def again(run: ApiCheckRun) -> ApiCheckRun:
    return ApiCheckRun.objects.get(pk=run.pk)


def outcomes(run: ApiCheckRun) -> dict[str, str]:
    return {result["key"]: result["outcome"] for result in again(run).results}


def namespaces(cluster: FakeCluster) -> set[str]:
    return {space["metadata"]["name"] for space in cluster.objects(NAMESPACES)} - {"default"}


@pytest.fixture
def cluster() -> FakeCluster:
    cluster = FakeCluster()
    cluster.put(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    return cluster


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_run_checks_all_and_leaves_nothing(cluster: FakeCluster, people: People, is_shared: bool) -> None:
    run = ask(people, is_shared=is_shared)
    assert AuditEntry.objects.get(object_type="apicheckrun").actor == people.admin
    run_once(cluster)
    run = again(run)
    assert (run.ended_at, run.is_clean, run.trouble) == (NOW, True, "")
    assert {result["key"]: result["words"] for result in run.results if result["outcome"] != "passed"} == {}
    assert run.namespace == NAMESPACE if is_shared else run.namespace.startswith("compute-grid-api-check-")
    assert namespaces(cluster) == {NAMESPACE}
    left = [obj["metadata"]["name"] for kind in (CONFIG_MAPS, SECRETS, PODS, LEASES) for obj in cluster.objects(kind)]
    assert left == []
    asked = len(cluster.requests)
    run_once(cluster)
    assert len(cluster.requests) == asked + 1  # whether there are forgotten namespaces


def test_check_runs_are_exclusive_and_sequential(cluster: FakeCluster, people: People) -> None:
    ask(people)
    with pytest.raises(Rejected, match="has not ended yet"):
        ask(people)
    run_once(cluster, ())
    ask(people)
    assert AuditEntry.objects.filter(object_type="apicheckrun").count() == 2


def test_missing_namespace_right_offers_the_shared_namespace(cluster: FakeCluster, people: People) -> None:
    cluster.forbidden[NAMESPACES] = 'namespaces is forbidden: User "controller" cannot create resource "namespaces"'
    run = ask(people)
    run_once(cluster)
    run = again(run)
    assert run.needs_shared and run.is_clean and run.ended_at == NOW
    assert run.trouble.startswith("The controller may not create namespaces: namespaces is forbidden")
    shared = ask(people, is_shared=True)
    run_once(cluster)
    assert set(outcomes(shared).values()) == {"passed"}


def without(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, verb: str, resource: str) -> None:
    """Have the cluster answer access reviews: all is allowed but this."""
    create = cluster.create

    async def answering(kind: Any, body: Any, **options: Any) -> Any:
        if kind is ACCESS_REVIEWS:
            asked = body["spec"]["resourceAttributes"]
            return {"status": {"allowed": (asked["verb"], asked["resource"]) != (verb, resource)}}
        return await create(kind, body, **options)

    monkeypatch.setattr(cluster, "create", answering)


def test_unremovable_object_is_not_made(cluster: FakeCluster, people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.forbidden[CONFIG_MAPS] = "configmaps is forbidden"
    run = ask(people, is_shared=True)
    run_once(cluster)
    assert outcomes(run)["objects"] == "no right"
    assert [obj for kind in (SECRETS, PODS, LEASES) for obj in cluster.objects(kind)] == []
    assert "could not be removed: configmaps is forbidden" in again(run).trouble

    without(cluster, monkeypatch, "delete", "namespaces")
    run = ask(people)
    run_once(cluster)
    assert again(run).needs_shared and namespaces(cluster) == {NAMESPACE}
    assert again(run).trouble.endswith(f"Missing in {run.namespace}: delete namespaces.")


def test_foreign_namespace_of_same_name_is_not_deleted(cluster: FakeCluster, people: People) -> None:
    run = ask(people)
    cluster.put(NAMESPACES, {"metadata": {"name": run.namespace}})
    run_once(cluster)
    assert namespaces(cluster) == {NAMESPACE, run.namespace}
    run = again(run)
    assert run.is_clean and run.results == []
    assert "No namespace could be created: " in run.trouble and "is not one of our checks’" in run.trouble


def test_refused_removal_blocks_no_run(cluster: FakeCluster, people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_: Any, **__: Any) -> None:
        raise Rejected([Problem("", "A webhook\0says no.")])

    monkeypatch.setattr(cluster, "delete", refuse)
    cluster.put(NAMESPACES, {"metadata": {"name": "compute-grid-api-check-old", "labels": {API_CHECK: NAMESPACE}}})
    for _ in range(2):
        run = ask(people)
        run_once(cluster, ())
        run = again(run)
        assert (run.ended_at, run.is_clean) == (NOW, True)
        assert run.trouble == f"What the checks have made in {run.namespace} could not be removed: A webhook says no."


def test_run_ends_when_api_server_hangs(cluster: FakeCluster, people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang(*_: Any, **__: Any) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(cluster, "create", hang)
    monkeypatch.setattr(keeper, "LONGEST_SECONDS", 0.0)
    run = ask(people)
    run_once(cluster)
    run = again(run)
    assert (run.ended_at, run.is_clean) == (NOW, True) and run.trouble.startswith("The checks did not end within")


def test_leftovers_of_stopped_controller_are_removed_by_next(cluster: FakeCluster, people: People) -> None:
    run = ask(people)

    async def killed(scratch: Scratch) -> None:
        raise SystemExit

    with pytest.raises(SystemExit):
        run_once(cluster, [*NO_CONTROLLERS[:3], ApiCheck("killed", "Killed", killed)])
    assert again(run).ended_at is None and namespaces(cluster) == {NAMESPACE, run.namespace}
    cluster.available = False
    with pytest.raises(ClusterUnavailable):
        run_once(cluster)
    cluster.available = True
    run_once(cluster)
    run = again(run)
    assert (run.trouble, run.is_clean, len(run.results)) == (STOPPED, True, 3)
    assert namespaces(cluster) == {NAMESPACE}

    shared = ask(people, is_shared=True)
    with pytest.raises(SystemExit):
        run_once(cluster, [*NO_CONTROLLERS[:4], ApiCheck("killed", "Killed", killed)])
    assert cluster.objects(PODS) != []
    run_once(cluster)
    assert again(shared).is_clean and cluster.objects(PODS) == [] and cluster.objects(CONFIG_MAPS) == []


def test_only_namespaces_of_forgotten_checks_are_removed(cluster: FakeCluster) -> None:
    for name, label in (
        ("compute-grid-api-check-old", NAMESPACE),
        ("other-api-check-old", "other"),
        ("compute-grid-api-check-mine", "other"),
        ("somebodys", NAMESPACE),
    ):
        cluster.put(NAMESPACES, {"metadata": {"name": name, "labels": {API_CHECK: label}}})
    run_once(cluster)
    assert namespaces(cluster) == {NAMESPACE, "other-api-check-old", "compute-grid-api-check-mine", "somebodys"}


def test_each_end_of_a_check_is_told_in_words(cluster: FakeCluster, people: People) -> None:
    def raising(error: Exception) -> Any:
        async def run(scratch: Scratch) -> None:
            raise error

        return run

    async def late(scratch: Scratch) -> None:
        async def never() -> bool:
            return False

        await until(never, "Nothing came within {seconds:.0f} s.", seconds=0.0)

    async def stuck(scratch: Scratch) -> None:
        await until(late_forever, "Never", seconds=60.0)

    async def late_forever() -> bool:
        return False

    checks = [
        ApiCheck("failed", "Failed", raising(CheckFailed("It did another thing."))),
        ApiCheck("refused", "Refused", raising(NotAllowed("pods is forbidden"))),
        ApiCheck("strange", "Strange", raising(KeyError("metadata"))),
        ApiCheck("nul", "NUL", raising(NotAllowed("a\0b"))),  # PostgreSQL stores none
        ApiCheck("late", "Late", late),
        ApiCheck("stuck", "Stuck", stuck, seconds=0.0),
    ]
    run = ask(people)
    run_once(cluster, checks)
    words = [f"{result['key']}: {result['outcome']}: {result['words']}" for result in again(run).results]
    assert_golden("words-of-api-checks", "\n".join(words), ending="txt")


def test_check_names_its_missing_right(cluster: FakeCluster, people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    without(cluster, monkeypatch, "create", "pods")
    run = ask(people, is_shared=True)
    run_once(cluster, [check for check in CHECKS if check.key in ("objects", "dry-run", "eviction")])
    words = [f"{result['key']}: {result['outcome']}: {result['words']}" for result in again(run).results]
    assert_golden("words-of-missing-rights", "\n".join(words), ending="txt")


def test_deployed_controller_lacks_only_rights_named_in_docs() -> None:
    documents = yaml.safe_load_all(Path(settings.BASE_DIR, "deploy/access.yaml").read_text())
    mine = {"compute-grid-controller", "compute-grid-controller-nodes"}
    rules = [
        rule
        for document in documents
        if document["kind"] in ("Role", "ClusterRole") and document["metadata"]["name"] in mine
        if document["metadata"].get("namespace", NAMESPACE) == NAMESPACE
        for rule in document["rules"]
        if "resourceNames" not in rule
    ]
    granted = {
        NeededRight(verb, resource, group)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    missing = {check.key: [str(right) for right in check.rights if right not in granted] for check in CHECKS}
    assert {key: rights for key, rights in missing.items() if rights} == {
        "jobs": ["create jobs.batch"],
        "leases": ["update leases.coordination.k8s.io"],
    }


def test_old_runs_are_deleted_unless_something_is_left(people: People) -> None:
    run = ask(people)
    apicheckruns.begin(run, NOW)
    apicheckruns.end(run, NOW)
    later = NOW + apicheckruns.KEPT_FOR + timedelta(seconds=1)
    assert apicheckruns.purge(later, 10) == 0
    apicheckruns.note_clean(run)
    assert apicheckruns.purge(later, 10) == 1
