"""A container's environment, its command and its volumes, as Kubernetes' documentation promises them; addresses and paths in them."""

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from grid.sandbox.client import Object
from grid.sandbox.kubelet.clusterips import addresses_in, replaced
from grid.sandbox.kubelet.environment import ConfigError, DownwardFacts, environment_of, expand
from grid.sandbox.kubelet.mounts import Mounts
from grid.sandbox.kubelet.process_runtime import checked_name
from grid.sandbox.kubelet.volumes import mount_places
from tests.sandbox.kubelet.support import CLAIM_SPEC, World, pod
from tests.support.waiting import eventually


class Sources:
    async def config_map(self, namespace: str, name: str) -> dict[str, bytes] | None:
        return {"mode": b"fast", "bad=name": b"x", "limit": b"5"} if name == "settings" else None

    async def secret(self, namespace: str, name: str) -> dict[str, bytes] | None:
        return {"token": b"s3cret"} if name == "keys" else None


FACTS = DownwardFacts(
    {
        "metadata": {
            "name": "p",
            "namespace": "ns",
            "uid": "u",
            "labels": {"tier": "small", "app": "x"},
            "annotations": {"note": "hi"},
        },
        "spec": {"serviceAccountName": "default", "containers": []},
    },
    pod_ip="127.64.0.9",
    host_ip="127.32.0.1",
    node_name="node-1",
    allocatable={"cpu": "8", "memory": "32Gi"},
)


async def values(container: Object) -> dict[str, str]:
    return {name: item.value for name, item in (await environment_of(container, FACTS, Sources())).items()}


async def test_every_kind_of_reference_is_resolved() -> None:
    container = {
        "resources": {"limits": {"memory": "2Gi"}, "requests": {"cpu": "250m"}},
        "envFrom": [
            {"prefix": "S_", "configMapRef": {"name": "settings"}},
            {"secretRef": {"name": "none", "optional": True}},
        ],
        "env": [
            {"name": "PLAIN", "value": "x"},
            {"name": "EMPTY"},
            {"name": "USES", "value": "$(PLAIN)-$(S_mode)-$(UNKNOWN)-$$(PLAIN)"},
            {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "token"}}},
            {"name": "MODE", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "mode"}}},
            {"name": "GONE", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "no", "optional": True}}},
            {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "TIER", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['tier']"}}},
            {"name": "MEM", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}},
            {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "requests.cpu"}}},
            {"name": "CPUMAX", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
        ],
    }
    assert await values(container) == {
        "S_mode": "fast",
        "S_limit": "5",
        "PLAIN": "x",
        "EMPTY": "",
        "USES": "x-fast-$(UNKNOWN)-$(PLAIN)",
        "TOKEN": "s3cret",
        "MODE": "fast",
        "IP": "127.64.0.9",
        "NODE": "node-1",
        "TIER": "small",
        "MEM": "2048",
        "CPU": "1",
        "CPUMAX": "8",
    }


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"secretKeyRef": {"name": "absent", "key": "k"}}, 'secret "absent" not found'),
        ({"configMapKeyRef": {"name": "absent", "key": "k"}}, 'configmap "absent" not found'),
        ({"secretKeyRef": {"name": "keys", "key": "k"}}, "couldn't find key k in Secret ns/keys"),
        ({"fieldRef": {"fieldPath": "status.nonsense"}}, "unsupported fieldPath: status.nonsense"),
    ],
)
async def test_a_reference_into_nothing_says_what_is_missing(source: Object, message: str) -> None:
    with pytest.raises(ConfigError, match="^" + message.replace("(", r"\(") + "$"):
        await environment_of({"env": [{"name": "X", "valueFrom": source}]}, FACTS, Sources())


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("$(A)", "1"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$A $(A", "$A $(A"),
        ("$(B)$(A)", "$(B)1"),
        ("$($(A))", "$($(A))"),
    ],
)
def test_references_are_expanded_as_kubernetes_does(text: str, wanted: str) -> None:
    assert expand(text, {"A": "1"}) == wanted


async def test_missing_secret_delays_its_container_until_present(world: World) -> None:
    env = [{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "later", "key": "token"}}}]
    await world.run(pod("needs", "echo $TOKEN", container={"env": env}))
    waiting = (await world.reason("needs", "CreateContainerConfigError"))["state"]["waiting"]
    assert waiting["message"] == 'secret "later" not found'
    assert await world.event("needs", "Failed") == 'Error: secret "later" not found'
    secret = {"metadata": {"name": "later"}, "data": {"token": base64.b64encode(b"now").decode()}}
    await world.api.create("/api/v1/namespaces/default/secrets", secret)
    world.clock.jump(10)
    await world.phase("needs", "Succeeded")
    assert world.log("needs") == "now"


async def test_volume_paths_are_real_except_inside_secrets(world: World) -> None:
    secret = {"metadata": {"name": "keys"}, "data": {"path": base64.b64encode(b"/data/secret").decode()}}
    await world.api.create("/api/v1/namespaces/default/secrets", secret)
    container: Object = {
        "args": ["/data/in", "--out=/data"],
        "env": [
            {"name": "DIR", "value": "/data/x:/other"},
            {"name": "KEPT", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "path"}}},
        ],
        "workingDir": "/data",
    }
    show = "import json, os, sys; print(json.dumps([sys.argv[1:], os.environ['DIR'], os.environ['KEPT'], os.getcwd()]))"
    await world.run(pod("paths", "python", "-c", show, container=container, mounts={"/data": {"emptyDir": {}}}))
    await world.phase("paths", "Succeeded")
    real = str(world.runtime.pod_directory(world.api.pod("paths")["metadata"]["uid"]) / "volumes" / "data")
    arguments, directory, kept, cwd = json.loads(world.log("paths"))
    assert arguments == [f"{real}/in", f"--out={real}"]
    assert (directory, kept, cwd) == (f"{real}/x:/other", "/data/secret", real)


async def test_config_maps_secrets_and_pod_fields_are_files(world: World) -> None:
    path = "/api/v1/namespaces/default"
    await world.api.create(f"{path}/configmaps", {"metadata": {"name": "conf"}, "data": {"a": "one", "b": "two"}})
    token = base64.b64encode(b"s3").decode()
    await world.api.create(f"{path}/secrets", {"metadata": {"name": "keys"}, "data": {"token": token}})
    sources = [
        {"secret": {"name": "keys"}},
        {"serviceAccountToken": {"path": "sa/token"}},
        {"downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
    ]
    mounts: dict[str, Object] = {
        "/conf": {"configMap": {"name": "conf", "items": [{"key": "b", "path": "sub/b.txt"}]}},
        "/all": {"projected": {"sources": sources}},
    }
    await world.run(pod("files", "cat /conf/sub/b.txt /all/token /all/sa/token /all/name; ls /conf", mounts=mounts))
    await world.phase("files", "Succeeded")
    assert world.log("files") == "twos3a-tokenfilessub"


async def test_a_file_about_the_pods_annotations_follows_them(world: World) -> None:
    item = {"path": "told", "fieldRef": {"fieldPath": "metadata.annotations['example.com/told']"}}
    script = "test -e /etc/about/told && until grep -q yes /etc/about/told; do sleep 0.05; done"
    await world.run(pod("waits", script, mounts={"/etc/about": {"downwardAPI": {"items": [item]}}}))
    await world.ready("waits")
    change = {"metadata": {"annotations": {"example.com/told": "yes"}}}
    await world.api.patch("/api/v1/namespaces/default/pods/waits", change)
    await world.phase("waits", "Succeeded")


async def test_claim_files_outlive_the_writing_pod(world: World) -> None:
    world.api.bind_claim("project")
    volumes = [{"name": "p", "persistentVolumeClaim": {"claimName": "project"}}]
    mount = {"volumeMounts": [{"name": "p", "mountPath": "/mnt/project", "subPath": "work"}]}
    await world.run(pod("writer", "echo kept > /mnt/project/file", container=mount, volumes=volumes))
    await world.phase("writer", "Succeeded")
    await world.delete("writer")
    await world.gone("writer")
    await world.run(pod("reader", "cat /mnt/project/file", container=mount, volumes=volumes))
    await world.phase("reader", "Succeeded")
    assert world.log("reader") == "kept"
    assert (world.directory / "volumes" / "default" / "project" / "work" / "file").read_text() == "kept\n"


@pytest.mark.parametrize("name", ["..", ".", "", "a/b", "a\0b", "x" * 300, "-a", "a\n"])
def test_a_name_that_would_leave_its_directory_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be the name"):
        checked_name(name)


@pytest.mark.parametrize("sub_path", ["../up", "/etc", "a/../../b"])
def test_a_sub_path_cannot_leave_its_volume(sub_path: str, tmp_path: Any) -> None:
    container = {"volumeMounts": [{"name": "v", "mountPath": "/v", "subPath": sub_path}]}
    with pytest.raises(ConfigError, match="inside its volume"):
        mount_places(container, {"v": tmp_path})


OWN_VOLUME = {"/scratch": {"ephemeral": {"volumeClaimTemplate": {"spec": CLAIM_SPEC}}}}


async def test_an_ephemeral_volume_goes_with_its_pod(world: World) -> None:
    created = await world.run(pod("work", "echo big > /scratch/x; cat /scratch/x", mounts=OWN_VOLUME))
    message = 'MountVolume.SetUp failed for volume "scratch" : persistentvolumeclaim "work-scratch" not found'
    assert await world.event("work", "FailedMount") == message
    owner = {"kind": "Pod", "name": "work", "uid": created["metadata"]["uid"], "controller": True}
    world.api.bind_claim("work-scratch", ownerReferences=[owner])
    world.clock.jump(5)
    await world.phase("work", "Succeeded")
    assert world.log("work") == "big"
    assert list(world.directory.rglob("scratch/x"))
    await world.delete("work")
    await world.gone("work")
    await eventually(lambda: not list(world.directory.rglob("scratch")), "its files go")


async def test_foreign_claim_is_never_used_as_ephemeral_volume(world: World) -> None:
    world.api.bind_claim("work-scratch")
    await world.run(pod("work", "true", mounts=OWN_VOLUME))
    assert (await world.event("work", "FailedMount")).endswith('"work-scratch" was not created for this pod')


async def test_socket_volume_is_private_and_has_short_path(tmp_path: Path) -> None:
    world = World(tmp_path / ("a" * 100))
    listen = "import socket, time; socket.socket(socket.AF_UNIX).bind('/run/sockets/web.sock'); time.sleep(600)"
    try:
        await world.run(pod("listens", "python3", "-c", listen, mounts={"/run/sockets": {"emptyDir": {}}}))
        uid = (await eventually(lambda: world.api.pod("listens").get("metadata")))["uid"]
        link = world.runtime.pod_directory(uid) / "volumes" / "sockets"
        await eventually(lambda: (link / "web.sock").is_socket(), "it listens")
        folder = link.resolve()
        assert len(str(folder)) < 30
        assert (folder.stat().st_mode & 0o777, folder.stat().st_uid) == (0o700, os.getuid())
        await world.restart()
        await world.ready("listens")
        assert link.resolve() == folder, "a kubelet that takes the pod over leaves it where it is"
        await world.delete("listens", grace=0)
        await eventually(lambda: not folder.exists(), "it goes with the pod")
    finally:
        await world.close()


async def test_loopback_address_in_variable_is_that_of_pod() -> None:
    values_ = {"ALONE": "127.0.0.1", "AFTER": "http://$(ALONE):1/", "WITHIN": "http://127.0.0.1:1/"}
    resolved = await values({"env": [{"name": name, "value": value} for name, value in values_.items()]})
    assert resolved == {"ALONE": "127.64.0.9", "AFTER": "http://127.64.0.9:1/", "WITHIN": "http://127.0.0.1:1/"}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("10.96.3.7", "127.48.3.8"),
        ("tcp://10.96.3.7:8786", "tcp://127.48.3.8:8786"),
        ("--address=10.96.3.7,10.96.3.70", "--address=127.48.3.8,127.48.3.71"),
        ("connect to 10.96.3.7.", "connect to 127.48.3.8."),
        ("ray://user@10.96.3.7/x?to=10.96.3.7", "ray://user@127.48.3.8/x?to=127.48.3.8"),
        ("110.96.3.7 10.96.3.701 1.10.96.3.7 10.96.3.7.1", "110.96.3.7 10.96.3.701 1.10.96.3.7 10.96.3.7.1"),
    ],
)
def test_an_address_is_replaced_only_as_a_whole(text: str, wanted: str) -> None:
    assert replaced(text, {"10.96.3.7": "127.48.3.8", "10.96.3.70": "127.48.3.71"}) == wanted


@given(address=st.lists(st.integers(0, 255).map(str), min_size=4, max_size=4).map(".".join), port=st.integers(1, 65535))
def test_every_address_in_a_url_is_found(address: str, port: int) -> None:
    url = f"tcp://{address}:{port}"
    local = address.startswith(("127.", "0."))
    assert addresses_in([url]) == (frozenset() if local else {address})
    assert replaced(url, {address: "HERE"}) == f"tcp://HERE:{port}"


async def test_the_command_and_the_environment_name_services_alike(world: World) -> None:
    world.services.places = {"10.96.3.7": "127.48.3.8"}
    environment: list[Any] = [
        {"name": "SCHEDULER", "value": "tcp://10.96.3.7:8786"},
        {"name": "OTHER", "value": "10.9.9.9"},
        {"name": "DERIVED", "value": "$(SCHEDULER)/x"},
    ]
    container = {"env": environment, "args": ["10.96.3.7"]}
    await world.run(pod("says", "echo $SCHEDULER $OTHER $DERIVED 10.96.3.7 $0", container=container))
    await world.phase("says", "Succeeded")
    assert world.log("says") == "tcp://127.48.3.8:8786 10.9.9.9 tcp://127.48.3.8:8786/x 127.48.3.8 127.48.3.8"
    assert [set(asked) for asked in world.services.asked] == [{"10.96.3.7", "10.9.9.9"}]


async def test_a_secret_is_given_as_it_is(world: World) -> None:
    world.services.places = {"10.96.3.7": "127.48.3.8"}
    secret = {"metadata": {"name": "s"}, "data": {"url": "MTAuOTYuMy43"}}
    await world.api.create("/api/v1/namespaces/default/secrets", secret)
    container = {"env": [{"name": "URL", "valueFrom": {"secretKeyRef": {"name": "s", "key": "url"}}}]}
    await world.run(pod("secret", "echo $URL", container=container))
    await world.phase("secret", "Succeeded")
    assert world.log("secret") == "10.96.3.7"


_NAMES = st.text("abcxyz0189_.-", min_size=1, max_size=6).filter(lambda text: text not in (".", ".."))
_PATHS = st.lists(_NAMES, min_size=1, max_size=3).map(lambda parts: "/" + "/".join(parts))
_BEFORE = st.sampled_from(["", " ", "=", ":", ",", "'", '"', "(", "--dir=", "a b ", ";", "|", "<", ">"])
_AFTER = st.sampled_from(["", " ", ":", ",", "'", '"', ")", "/", "/x", "/x/y.txt", ";", "|"])


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("/data", "/real/d"),
        ("/data/x.csv", "/real/d/x.csv"),
        ("--root=/mnt/project:/data", "--root=/real/p:/real/d"),
        ("cd /mnt/project && python main.py > '/data/out'", "cd /real/p && python main.py > '/real/d/out'"),
        ("/mnt/project/sub/x", "/real/s/x"),
        ("/mnt/project/subway", "/real/p/subway"),
        ("/data2 /data-old /data.bak /mnt/data", "/data2 /data-old /data.bak /mnt/data"),
        (
            "http://127.0.0.1:8888/data s/data/x/ ~/data ${HOME}/data",
            "http://127.0.0.1:8888/data s/data/x/ ~/data ${HOME}/data",
        ),
    ],
)
def test_path_is_rewritten_only_where_it_stands_alone(text: str, wanted: str) -> None:
    places = {"/data/": "/real/d", "/mnt/project": "/real/p", "/mnt/project/sub": "/real/s"}
    assert Mounts(places).rewrite(text) == wanted


@given(path=_PATHS, before=_BEFORE, after=_AFTER)
def test_a_path_between_separators_is_always_found(path: str, before: str, after: str) -> None:
    assert Mounts({path: "/R"}).rewrite(before + path + after) == before + "/R" + after
