"""A pod that writes more to its node than it may is evicted, in Kubernetes' words; what it may is kept."""

from pathlib import Path
from typing import Any

from grid.sandbox.kubelet.localstorage import excess
from tests.sandbox.kubelet.support import World, pod
from tests.support.waiting import eventually

MIB = 2**20
WRITES_TOO_MUCH = "dd if=/dev/zero of=$HOME/big bs=1M count=3 2>/dev/null; echo written; sleep 600"


def limited(limit: str) -> dict[str, Any]:
    return {"resources": {"limits": {"ephemeral-storage": limit}}}


async def test_pod_writing_beyond_its_limit_is_evicted(world: World) -> None:
    await world.run(pod("writer", WRITES_TOO_MUCH, container=limited("2Mi"), restartPolicy="Always"))
    await world.ready("writer")
    await eventually(lambda: "written" in world.log("writer"))
    world.clock.jump(11)
    status = await world.phase("writer", "Failed")
    assert status["reason"] == "Evicted"
    assert status["message"] == "Pod ephemeral local storage usage exceeds the total limit of containers 2Mi. "
    assert await world.event("writer", "Evicted") == status["message"]


async def test_claim_data_does_not_count_toward_pod_limit(world: World) -> None:
    world.api.bind_claim("kept")
    mounts: dict[str, Any] = {
        "/kept": {"persistentVolumeClaim": {"claimName": "kept"}},
        "/scratch": {"emptyDir": {"sizeLimit": "2Mi"}},
    }
    script = (
        "dd if=/dev/zero of=/kept/big bs=1M count=5 2>/dev/null; echo small > /scratch/small; echo written; sleep 600"
    )
    body = pod("keeper", script, container=limited("2Mi"), mounts=mounts)
    await world.run(body)
    await world.ready("keeper")
    await eventually(lambda: "written" in world.log("keeper"))
    assert excess(body, world.runtime.pod_directory(world.api.pod("keeper")["metadata"]["uid"])) == ""


def written(directory: Path, place: str, mebibytes: int) -> None:
    path = directory / place / "file"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"x" * mebibytes * MIB)


def two_containers(first: str, second: str, **volume: Any) -> dict[str, Any]:
    body = pod("p", "true", container=limited(first), volumes=[{"name": "v", "emptyDir": volume or None}])
    body["spec"]["containers"].append({"name": "other", "image": "x", **(limited(second) if second else {})})
    return body


def test_local_storage_is_limited_per_volume_container_and_pod(tmp_path: Path) -> None:
    for place, mebibytes in (("volumes/v", 3), ("containers/run/0/root", 2), ("containers/other/0/log", 1)):
        written(tmp_path, place, mebibytes)
    assert excess(two_containers("20Mi", "20Mi"), tmp_path) == ""
    problem = excess(two_containers("20Mi", "20Mi", sizeLimit="2Mi"), tmp_path)
    assert problem == 'Usage of EmptyDir volume "v" exceeds the limit "2Mi". '
    assert excess(two_containers("20Mi", "20Mi", sizeLimit="2Mi", medium="Memory"), tmp_path) == "", "that is memory"
    problem = excess(two_containers("3Mi", "2Mi"), tmp_path)
    assert problem == f"Pod ephemeral local storage usage exceeds the total limit of containers {5 * MIB}. "
    assert excess(two_containers("3Mi", ""), tmp_path) == "", "a container without a limit lifts that of the pod"
    problem = excess(two_containers("1Mi", "20Mi"), tmp_path)
    assert problem == 'Container run exceeded its local ephemeral storage limit "1Mi". '
