"""Patches and subresources change exactly what they name, and writers who race do not overwrite each other."""

import asyncio

from tests.contract.client import Object
from tests.contract.manifests import IMAGE, config_map, deployment, lease, pod, replica_set
from tests.contract.space import Space


async def containers_after(space: Space, name: str, containers: list[Object]) -> dict[str, Object]:
    change = {"spec": {"template": {"spec": {"containers": containers}}}}
    patched = (await space.patch("deployments", name, change, kind="strategic")).ok(200)
    return {each["name"]: each for each in patched["spec"]["template"]["spec"]["containers"]}


async def two_containers(space: Space, name: str) -> None:
    made = deployment(name)
    env = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    made["spec"]["template"]["spec"]["containers"] = [
        {"name": "app", "image": IMAGE, "args": ["x", "y"], "env": env},
        {"name": "side", "image": IMAGE},
    ]
    (await space.create("deployments", made)).ok(201)


async def test_a_merge_patch_sets_adds_and_removes_by_null(space: Space, name: str) -> None:
    (await space.create("configmaps", config_map(name, {"keep": "1", "set": "1", "drop": "1"}))).ok(201)
    patched = (await space.patch("configmaps", name, {"data": {"set": "2", "drop": None, "add": "3"}})).ok(200)
    assert patched["data"] == {"keep": "1", "set": "2", "add": "3"}
    assert (await space.get("configmaps", name)).ok() == patched


async def test_a_merge_patch_replaces_a_list_as_a_whole(space: Space, name: str) -> None:
    await two_containers(space, name)
    only = [{"name": "new", "image": IMAGE}]
    patched = (await space.patch("deployments", name, {"spec": {"template": {"spec": {"containers": only}}}})).ok(200)
    assert [each["name"] for each in patched["spec"]["template"]["spec"]["containers"]] == ["new"]


async def test_a_strategic_patch_finds_containers_by_name(space: Space, name: str) -> None:
    await two_containers(space, name)
    after = await containers_after(space, name, [{"name": "app", "image": "registry.example/app:2"}])
    assert set(after) == {"app", "side"}
    assert (after["app"]["image"], after["app"]["args"]) == ("registry.example/app:2", ["x", "y"])
    assert after["side"]["image"] == IMAGE


async def test_a_strategic_patch_adds_and_removes_list_members(space: Space, name: str) -> None:
    await two_containers(space, name)
    after = await containers_after(space, name, [{"name": "new", "image": IMAGE}, {"name": "side", "$patch": "delete"}])
    assert set(after) == {"app", "new"}


async def test_strategic_patch_merges_variables_by_name_and_replaces_lists(space: Space, name: str) -> None:
    await two_containers(space, name)
    env = [{"name": "B", "value": "9"}, {"name": "C", "value": "3"}]
    after = await containers_after(space, name, [{"name": "app", "env": env, "args": ["z"]}])
    assert {each["name"]: each["value"] for each in after["app"]["env"]} == {"A": "1", "B": "9", "C": "3"}
    assert after["app"]["args"] == ["z"]


async def test_a_strategic_patch_updates_conditions_by_type(space: Space, name: str) -> None:
    (await space.create("pods", pod(name))).ok(201)
    for kind, status in [("Ready", "False"), ("example.com/Warm", "True"), ("Ready", "True")]:
        change = {"status": {"conditions": [{"type": kind, "status": status}]}}
        (await space.patch("pods", name, change, kind="strategic", sub="status")).ok(200)
    conditions = (await space.get("pods", name)).ok()["status"]["conditions"]
    assert {each["type"]: each["status"] for each in conditions} == {"Ready": "True", "example.com/Warm": "True"}


async def test_finalizers_merge_in_a_strategic_patch(space: Space, name: str) -> None:
    (await space.create("configmaps", config_map(name, finalizers=["example.com/a"]))).ok(201)
    change: Object = {"metadata": {"finalizers": ["example.com/b"]}}
    meta = (await space.patch("configmaps", name, change, kind="strategic")).ok(200)["metadata"]
    assert sorted(meta["finalizers"]) == ["example.com/a", "example.com/b"]
    (await space.patch("configmaps", name, {"metadata": {"finalizers": None}})).ok(200)


async def test_the_status_path_changes_the_status_only(space: Space, name: str) -> None:
    made = (await space.create("pods", pod(name))).ok(201)
    change = {"spec": {"restartPolicy": "Never"}, "status": {"phase": "Running", "message": "hello"}}
    patched = (await space.patch("pods", name, change, sub="status")).ok(200)
    assert (patched["status"]["phase"], patched["status"]["message"]) == ("Running", "hello")
    assert patched["spec"] == made["spec"]
    assert (await space.get("pods", name, "status")).ok(200)["status"] == patched["status"]


async def test_the_objects_own_path_does_not_change_the_status(space: Space, name: str) -> None:
    made = (await space.create("pods", pod(name))).ok(201)
    change = {"metadata": {"labels": {"a": "1"}}, "status": {"phase": "Failed"}}
    patched = (await space.patch("pods", name, change)).ok(200)
    assert (patched["status"], patched["metadata"]["labels"]) == (made["status"], {"a": "1"})
    replaced = (await space.replace("pods", patched | {"status": {"phase": "Failed"}})).ok(200)
    assert replaced["status"] == made["status"]


async def test_the_generation_counts_changes_of_the_spec(space: Space, name: str) -> None:
    # A paused Deployment without pods: its controller has nothing to write into the spec meanwhile.
    made = (await space.create("deployments", deployment(name, paused=True))).ok(201)
    assert made["metadata"]["generation"] == 1
    labelled = (await space.patch("deployments", name, {"metadata": {"labels": {"a": "1"}}})).ok(200)
    assert labelled["metadata"]["generation"] == 1
    for generation, replicas in [(2, 1), (2, 1), (3, 0)]:
        changed = (await space.patch("deployments", name, {"spec": {"replicas": replicas}})).ok(200)
        assert changed["metadata"]["generation"] == generation
    status = (await space.patch("deployments", name, {"status": {"replicas": 7}}, sub="status")).ok(200)
    assert status["metadata"]["generation"] == 3


async def test_scale_changes_the_replicas_and_nothing_else(space: Space, name: str) -> None:
    made = (await space.create("replicasets", replica_set(name, 0))).ok(201)
    patched = (await space.patch("replicasets", name, {"spec": {"replicas": 2}}, sub="scale")).ok(200)
    assert (patched["kind"], patched["spec"]) == ("Scale", {"replicas": 2})
    assert (await space.get("replicasets", name)).ok()["spec"] == made["spec"] | {"replicas": 2}
    put = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": name, "namespace": space.namespace}}
    assert (await space.replace("replicasets", put | {"spec": {"replicas": 1}}, sub="scale")).ok(200)["spec"] == {
        "replicas": 1
    }
    assert (await space.get("replicasets", name)).ok()["spec"]["replicas"] == 1
    (await space.patch("replicasets", name, {"spec": {"replicas": 0}}, sub="scale")).ok(200)
    # Zero is left out of a Scale, as every empty number is.
    assert (await space.get("replicasets", name, "scale")).ok(200)["spec"].get("replicas", 0) == 0


async def test_a_stale_replacement_is_refused(space: Space, name: str) -> None:
    first = (await space.create("configmaps", config_map(name, {"n": "1"}))).ok(201)
    (await space.replace("configmaps", first | {"data": {"n": "2"}})).ok(200)
    refusal = (await space.replace("configmaps", first | {"data": {"n": "3"}})).refused(409, "Conflict")
    assert refusal["details"] == {"name": name, "kind": "configmaps"}
    assert (await space.get("configmaps", name)).ok()["data"] == {"n": "2"}


async def test_a_stale_patch_with_a_version_is_refused(space: Space, name: str) -> None:
    first = (await space.create("configmaps", config_map(name, {"n": "1"}))).ok(201)
    (await space.patch("configmaps", name, {"data": {"n": "2"}})).ok(200)
    stale = {"metadata": {"resourceVersion": first["metadata"]["resourceVersion"]}, "data": {"n": "3"}}
    (await space.patch("configmaps", name, stale)).refused(409, "Conflict")
    assert (await space.get("configmaps", name)).ok()["data"] == {"n": "2"}


async def test_patch_without_version_merges_into_current_state(space: Space, name: str) -> None:
    (await space.create("configmaps", config_map(name, {"a": "1"}))).ok(201)
    await asyncio.gather(*(space.patch("configmaps", name, {"data": {f"k{n}": "x"}}) for n in range(5)))
    assert set((await space.get("configmaps", name)).ok()["data"]) == {"a", "k0", "k1", "k2", "k3", "k4"}


async def test_changes_raise_the_version_and_keep_the_identity(space: Space, name: str) -> None:
    made = (await space.create("configmaps", config_map(name, {"n": "0"}))).ok(201)["metadata"]
    versions = [int(made["resourceVersion"])]
    for n in range(1, 4):
        now = (await space.replace("configmaps", config_map(name, {"n": str(n)}))).ok(200)["metadata"]
        assert (now["uid"], now["creationTimestamp"]) == (made["uid"], made["creationTimestamp"])
        versions.append(int(now["resourceVersion"]))
    assert versions == sorted(set(versions))


NOW = "2026-01-02T03:04:05.678901Z"


async def test_microseconds_of_the_times_are_kept(space: Space, name: str) -> None:
    made = (await space.create("leases", lease(name, "me", acquireTime=NOW, renewTime=NOW, leaseTransitions=0))).ok(201)
    assert made["spec"] == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "acquireTime": NOW,
        "renewTime": NOW,
        "leaseTransitions": 0,
    }


async def test_lease_is_created_by_exactly_one_candidate(space: Space, name: str) -> None:
    answers = await asyncio.gather(*(space.create("leases", lease(name, f"candidate-{n}")) for n in range(8)))
    winners = [answer.body["spec"]["holderIdentity"] for answer in answers if answer.status == 201]
    assert len(winners) == 1
    assert (await space.get("leases", name)).ok(200)["spec"]["holderIdentity"] == winners[0]
    for answer in answers:
        if answer.status != 201:
            answer.refused(409, "AlreadyExists")


async def test_expired_lease_is_taken_over_by_one_candidate(space: Space, name: str) -> None:
    expired = (await space.create("leases", lease(name, "former"))).ok(201)

    def taken_by(candidate: str) -> Object:
        return expired | {"spec": expired["spec"] | {"holderIdentity": candidate, "renewTime": NOW}}

    answers = await asyncio.gather(*(space.replace("leases", taken_by(f"candidate-{n}")) for n in range(8)))
    winners = [answer.body["spec"]["holderIdentity"] for answer in answers if answer.status == 200]
    assert len(winners) == 1
    assert (await space.get("leases", name)).ok(200)["spec"]["holderIdentity"] == winners[0]
    for answer in answers:
        if answer.status != 200:
            answer.refused(409, "Conflict")
