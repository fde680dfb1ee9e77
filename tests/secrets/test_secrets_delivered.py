"""Stored secrets on their way: from the database through the controller into the cluster, and what happens when one was deleted before."""

import base64
import json
from collections.abc import Mapping
from typing import Any

import pytest

from grid.kube.objects import RawObject
from grid.kube.resources import DEPLOYMENTS, SECRETS
from grid.models import Environment, StoredSecret
from grid.secrets import storedsecrets
from tests.clusters.test_cluster_life import notes, running_cluster
from tests.controller.world import World, fresh, in_world
from tests.support.builders import NAMESPACE
from tests.support.reading import OWNER
from tests.support.shop import NOW, Shop

VALUE = "correct horse battery staple"


def stored(shop: Shop, name: str, **changed: Any) -> StoredSecret:
    owner = shop.people.owner
    given: dict[str, Any] = {"owner": owner, "project": None, "is_file": False, "value": VALUE, "now": NOW}
    return storedsecrets.put(by=owner, name=name, **(given | changed))


def values_in(world: World, name: str) -> Mapping[str, str]:
    (secret,) = [stored for stored in world.cluster.objects(SECRETS) if stored["metadata"]["name"] == name]
    return {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}


def variables_of(pod: RawObject) -> dict[str, Any]:
    return {variable["name"]: variable for variable in pod["spec"]["containers"][0]["env"]}


@in_world
async def test_program_gets_secrets_as_variable_and_file(shop: Shop) -> None:
    stored(shop, "DB_PASSWORD", owner=None, project=shop.project)
    stored(shop, "key.pem", is_file=True, value="line\nline\n")
    execution, world = shop.launch(), World()
    await world.step(world.controller())
    name = f"{execution.object_name}-secrets"
    assert values_in(world, name) == {"DB_PASSWORD": VALUE, "key.pem": "line\nline\n"}
    pod = world.pod_of(execution)
    assert VALUE not in json.dumps(pod)
    reference = {"secretKeyRef": {"name": name, "key": "DB_PASSWORD"}}
    assert variables_of(pod)["DB_PASSWORD"] == {"name": "DB_PASSWORD", "valueFrom": reference}
    (volume,) = [item for item in pod["spec"]["volumes"] if item["name"] == "secrets"]
    assert volume["secret"]["secretName"] == name
    assert volume["secret"]["items"] == [{"key": "key.pem", "path": "key.pem"}]
    (mount,) = [item for item in pod["spec"]["containers"][0]["volumeMounts"] if item["name"] == "secrets"]
    assert (mount["mountPath"], mount["readOnly"]) == ("/mnt/secrets", True)


@in_world
async def test_environment_variable_can_refer_to_a_secret(shop: Shop) -> None:
    """Kubernetes expands only what comes earlier in the list."""
    address = "postgres://grid:$(DB_PASSWORD)@db/grid"
    Environment.objects.filter(pk=shop.workspace.pk).update(variables={"A": "$(Z)", "DATABASE": address, "Z": "kept"})
    for name in ("DB_PASSWORD", "Z"):
        stored(shop, name)
    execution, world = shop.launch(), World()
    await world.step(world.controller())
    variables = variables_of(world.pod_of(execution))
    order = list(variables)
    assert variables["DATABASE"]["value"] == address
    assert order.index("DB_PASSWORD") < order.index("DATABASE")
    assert order.index("Z") < order.index("A"), "also one that replaces a variable of the environment"
    assert variables["Z"]["valueFrom"]["secretKeyRef"]["name"].endswith("-secrets")


@in_world
async def test_execution_with_deleted_secret_ends_with_a_sentence(shop: Shop) -> None:
    secret = stored(shop, "DB_PASSWORD")
    execution, world = shop.launch(), World()
    storedsecrets.delete(secret, by=shop.people.owner)
    await world.step(world.controller())
    assert (fresh(execution).state, execution.reason) == ("error", "secret_missing")
    assert execution.words(OWNER) == "Its secret DB_PASSWORD was deleted after the launch. Launch again without it."
    assert not world.pods() and execution.slots_freed_at is not None


@pytest.mark.parametrize("is_deleted", [False, True])
def test_drift_repair_restores_secrets_except_deleted_ones(shop: Shop, is_deleted: bool) -> None:
    secret = stored(shop, "DB_PASSWORD")

    @in_world
    async def repaired() -> None:
        world, controller, execution = await running_cluster(shop)
        name = f"{execution.object_name}-secrets"
        if is_deleted:
            storedsecrets.delete(secret, by=shop.people.owner)
        else:
            world.cluster.remove(SECRETS, name, namespace=NAMESPACE)
        world.cluster.remove(DEPLOYMENTS, f"{execution.object_name}-worker", namespace=NAMESPACE)
        await controller.audit()
        await world.step(controller)
        assert fresh(execution).state == "running"
        assert values_in(world, name) == {"DB_PASSWORD": VALUE}, "a running cluster keeps what it was started with"
        made_again = {"Deployment"} | (set() if is_deleted else {"Secret"})
        assert {note.object.partition("/")[0] for note in notes(execution, "made_again")} == made_again

    repaired()
