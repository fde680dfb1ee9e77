"""Status and scale are changed through their own paths, and neither leaks into the other parts of an object."""

from tests.contract.manifests import deployment, pod, replica_set
from tests.contract.space import Space


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
    assert patched["status"] == made["status"]
    assert patched["metadata"]["labels"] == {"a": "1"}
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
    now = (await space.get("replicasets", name)).ok()
    assert now["spec"] == made["spec"] | {"replicas": 2}
    put = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": name, "namespace": space.namespace}}
    assert (await space.replace("replicasets", put | {"spec": {"replicas": 1}}, sub="scale")).ok(200)["spec"] == {
        "replicas": 1
    }
    assert (await space.get("replicasets", name)).ok()["spec"]["replicas"] == 1
    (await space.patch("replicasets", name, {"spec": {"replicas": 0}}, sub="scale")).ok(200)
    # Zero is left out of a Scale, as every empty number is.
    assert (await space.get("replicasets", name, "scale")).ok(200)["spec"].get("replicas", 0) == 0
