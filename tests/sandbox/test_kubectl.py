"""The real kubectl works against the embedded API server, for what operators do with it."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest_asyncio

from tests.sandbox.apiserver.conftest import Api
from tests.sandbox.apiserver.test_kubelets import Kubelet

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: app, image: "registry.example/app:1", resources: {requests: {cpu: 500m, memory: 1Gi}}}
"""


@dataclass(slots=True)
class Kubectl:
    directory: Path

    async def start(self, *arguments: str, stdin: str = "") -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            str(Path(sys.executable).parent / "kubectl"),
            *("--kubeconfig", str(self.directory / "kubeconfig"), "--cache-dir", str(self.directory / "cache")),
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={"HOME": str(self.directory), "TZ": "UTC"},
        )
        assert process.stdin is not None
        process.stdin.write(stdin.encode())
        process.stdin.close()
        return process

    async def __call__(self, *arguments: str, stdin: str = "", code: int = 0) -> str:
        process = await self.start(*arguments, stdin=stdin)
        assert process.stdout is not None
        async with asyncio.timeout(30):
            output = (await process.stdout.read()).decode()
            ended = await process.wait()
        assert ended == code, output
        return output


@pytest_asyncio.fixture
async def kubectl(api: Api, tmp_path: Path) -> AsyncIterator[Kubectl]:
    directory = tmp_path / "kubectl"
    directory.mkdir()
    (directory / "kubeconfig").write_text(api.server.kubeconfig())
    yield Kubectl(directory)


def columns(output: str) -> list[list[str]]:
    return [line.split() for line in output.splitlines()]


async def test_get_watch_shows_changes_as_they_happen(api: Api, kubectl: Kubectl) -> None:
    await api.pod("a")
    process = await kubectl.start("get", "pods", "-w", "--no-headers", "--output-watch-events")
    assert process.stdout is not None
    try:
        async with asyncio.timeout(20):
            assert (await process.stdout.readline()).split()[:2] == [b"ADDED", b"a"]
            await api.pod("b")
            assert (await process.stdout.readline()).split()[:2] == [b"ADDED", b"b"]
            await api.ask("DELETE", "/api/v1/namespaces/default/pods/b")
            assert (await process.stdout.readline()).split()[:2] == [b"DELETED", b"b"]
    finally:
        process.kill()
        await process.communicate()


async def test_apply_creates_configures_and_leaves_alone(api: Api, kubectl: Kubectl) -> None:
    assert await kubectl("apply", "-f", "-", stdin=DEPLOYMENT) == "deployment.apps/web created\n"
    assert await kubectl("apply", "-f", "-", stdin=DEPLOYMENT) == "deployment.apps/web unchanged\n"
    changed = DEPLOYMENT.replace("app:1", "app:2")
    assert await kubectl("apply", "-f", "-", stdin=changed) == "deployment.apps/web configured\n"
    image = await kubectl("get", "deploy", "web", "-o", "jsonpath={.spec.template.spec.containers[0].image}")
    assert image == "registry.example/app:2"


async def test_a_typing_error_is_refused_with_its_path(api: Api, kubectl: Kubectl) -> None:
    wrong = DEPLOYMENT.replace("replicas", "replicsa")
    assert 'unknown field "spec.replicsa"' in await kubectl("apply", "-f", "-", stdin=wrong, code=1)


async def test_commands_that_change_an_object_work(api: Api, kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    await kubectl("scale", "deploy/web", "--replicas=5")
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "app", "tty": True}]}}}}
    await kubectl("patch", "deploy", "web", "-p", json.dumps(patch))
    await kubectl("label", "deploy", "web", "x=y")
    await kubectl("annotate", "deploy", "web", "note=yes")
    deployment = json.loads(await kubectl("get", "deploy", "web", "-o", "json"))
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    assert (deployment["spec"]["replicas"], container["tty"]) == (5, True)
    assert container["image"] == "registry.example/app:1"
    assert deployment["metadata"]["labels"] == {"app": "web", "x": "y"}
    assert deployment["metadata"]["annotations"]["note"] == "yes"
    await kubectl("autoscale", "deploy", "web", "--min=1", "--max=4", "--cpu=80%")
    row = columns(await kubectl("get", "hpa", "--no-headers"))[0]
    assert row == ["web", "Deployment/web", "cpu:", "<unknown>/80%", "1", "4", "0", "0s"]
    assert "deleted" in await kubectl("delete", "-f", "-", "--cascade=foreground", stdin=DEPLOYMENT)


async def test_commands_that_create_and_delete_work(api: Api, kubectl: Kubectl) -> None:
    """Some of them send Kubernetes' binary encoding."""
    await kubectl("create", "namespace", "team")
    await kubectl("create", "configmap", "a", "--from-literal=x=y", "-n", "team")
    await kubectl("create", "secret", "generic", "s", "--from-literal=x=y", "-n", "team")
    await kubectl("create", "deployment", "d", "--image=i:1", "--replicas=0", "-n", "team")
    await kubectl("create", "quota", "q", "--hard=pods=2", "-n", "team")
    await kubectl("expose", "deployment", "d", "--port=80", "-n", "team")
    await kubectl("run", "p", "--image=i:1", "-n", "team")
    assert await kubectl("get", "deploy", "d", "-n", "team", "-o", "jsonpath={.spec.replicas}") == "0"
    names = (await kubectl("get", "all,cm,secret,quota", "-n", "team", "-o", "name")).split()
    assert {"pod/p", "service/d", "deployment.apps/d", "configmap/a", "secret/s", "resourcequota/q"} <= set(names)
    assert "deleted" in await kubectl("delete", "namespace", "team", "--timeout=20s")
    assert "NotFound" in await kubectl("get", "namespace", "team", code=1)


async def test_describe_tells_about_nodes_and_pods_and_their_events(api: Api, kubectl: Kubectl) -> None:
    await api.make("/api/v1/nodes", {"metadata": {"name": "n1", "labels": {"pool": "a"}}})
    made = await api.pod("p", node="n1")
    about = {"kind": "Pod", "name": "p", "namespace": "default", "uid": made["metadata"]["uid"]}
    event = {"involvedObject": about, "reason": "Pulled", "message": "It is here", "type": "Normal"}
    await api.make("/api/v1/namespaces/default/events", {"metadata": {"name": "e"}, **event})
    node, pod = await kubectl("describe", "node", "n1"), await kubectl("describe", "pod", "p")
    assert "pool=a" in node and "Non-terminated Pods:          (1 in total)" in node
    assert "Node:             n1/" in pod and "Pulled" in pod
    assert "It is here" in await kubectl("events")
    assert "pod/p" in await kubectl("get", "events")


async def test_kubectl_shows_identity_and_permissions(api: Api, kubectl: Kubectl) -> None:
    assert "admin" in await kubectl("auth", "whoami")
    assert "compute-grid-web" in await kubectl("--context=web", "auth", "whoami")
    assert "yes" in await kubectl("auth", "can-i", "create", "pods")
    assert "Server Version: v1.36" in await kubectl("version")
    assert "horizontalpodautoscalers" in await kubectl("api-resources")


async def test_a_node_is_cordoned_and_drained(api: Api, kubectl: Kubectl) -> None:
    await api.make("/api/v1/nodes", {"metadata": {"name": "n1"}})
    assert await kubectl("cordon", "n1") == "node/n1 cordoned\n"
    assert columns(await kubectl("get", "nodes", "--no-headers"))[0][1] == "Unknown,SchedulingDisabled"
    assert "drained" in await kubectl("drain", "n1", "--timeout=20s")
    await kubectl("taint", "nodes", "n1", "a=b:NoSchedule")
    await kubectl("taint", "nodes", "n1", "a=b:NoExecute")
    effects = await kubectl("get", "node", "n1", "-o", "jsonpath={.spec.taints[*].effect}")
    assert {"NoSchedule", "NoExecute"} <= set(effects.split())


async def test_logs_and_usage_come_from_the_node(api: Api, kubectl: Kubectl, kubelet: Kubelet) -> None:
    assert await kubectl("logs", "p", "--tail=5") == "one\ntwo\n"
    assert columns(await kubectl("top", "pods", "--no-headers")) == [["p", "250m", "64Mi"]]
    assert columns(await kubectl("top", "nodes", "--no-headers"))[0][:2] == ["n1", "250m"]
