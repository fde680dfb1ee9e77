"""A Deployment, its Service and a client, as real processes of the embedded cluster: the client is told the cluster IP only."""

from pathlib import Path
from typing import Any

from grid.sandbox.client import DEPLOYMENTS, PODS, SERVICES, Client, Object, name_of
from tests.sandbox.machines import machine
from tests.support.waiting import eventually

# Answers with its pod's name, on its pod's address.
_SERVER = """
import os, socket
with socket.create_server((os.environ["POD_IP"], 8786)) as server:
    while True:
        client, _ = server.accept()
        client.sendall(os.environ["HOSTNAME"].encode())
        client.close()
"""
_CLIENT = """
import os, socket, sys
host, port = os.environ["ADDRESS"].removeprefix("tcp://").split(":")
answers, asked = set(), 0
while len(answers) < int(sys.argv[1]) or asked < 10:
    asked += 1
    with socket.create_connection((host, int(port))) as server:
        answers.add(server.recv(100).decode())
with open(sys.argv[2], "w") as message:
    message.write(" ".join(answers))
"""


def container(script: str, *arguments: str, **fields: Any) -> Object:
    command = ["python3", "-c", script, *arguments]
    return {"name": "run", "image": "compute-grid/test:1", "command": command, **fields}


def deployment(replicas: int = 2, *, grace: int = 1, **fields: Any) -> Object:
    address = [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]
    probe = {"tcpSocket": {"port": "comm"}, "periodSeconds": 1}
    run = container(
        _SERVER, env=address, ports=[{"name": "comm", "containerPort": 8786}], readinessProbe=probe, **fields
    )
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "head"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "head"}},
            "template": {
                "metadata": {"labels": {"app": "head"}},
                "spec": {"terminationGracePeriodSeconds": grace, "containers": [run]},
            },
        },
    }


async def test_client_reaches_deployment_pods_through_service(tmp_path: Path) -> None:
    async with machine(tmp_path) as client:
        spec = {"selector": {"app": "head"}, "ports": [{"port": 18786, "targetPort": "comm"}]}
        body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "head"}, "spec": spec}
        service = await client.create(SERVICES.path("default"), body)
        await client.create(DEPLOYMENTS.path("default"), deployment())
        await eventually(
            lambda: client.get(DEPLOYMENTS.path("default", "head")),
            holds=lambda deployment: deployment["status"].get("readyReplicas") == 2,
        )
        heads = {name_of(pod) for pod in await client.list(PODS.path("default"))}
        assert await answers(client, "both", service, 2) == heads
        await client.patch(DEPLOYMENTS.path("default", "head", "scale"), {"spec": {"replicas": 1}})
        left = await eventually(
            lambda: client.list(PODS.path("default"), label_selector="app=head"), holds=lambda pods: len(pods) == 1
        )
        assert await answers(client, "one", service, 1) == {name_of(left[0])}


def client_pod(name: str, cluster_ip: str, count: int) -> Object:
    """Asks until so many pods have answered, and leaves their names as its termination message."""
    address = [{"name": "ADDRESS", "value": f"tcp://{cluster_ip}:18786"}]
    run = container(_CLIENT, str(count), "/dev/termination-log", env=address)
    spec = {"restartPolicy": "Never", "containers": [run]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


async def answers(client: Client, name: str, service: Object, count: int) -> set[str]:
    """Which pods answered a client that was told the cluster IP."""
    await client.create(PODS.path("default"), client_pod(name, service["spec"]["clusterIP"], count))
    path = PODS.path("default", name)
    done = await eventually(lambda: client.get(path), holds=lambda pod: pod["status"].get("phase") == "Succeeded")
    return set(done["status"]["containerStatuses"][0]["state"]["terminated"]["message"].split())
