"""dask-gateway's controller for Kubernetes beside ours: its resources, its process, and what a full cluster would do for it.

It is no dependency of this project: `install` makes a virtual environment of its own. What the embedded cluster lacks is done
here: the definitions of its custom resources and of traefik's routes, and the Endpoints of the Services that it makes.
"""

import asyncio
import contextlib
import json
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.embedded import process
from grid.core.errors import GridError
from grid.sandbox.client import PODS, SERVICES, Client, Mirror, Object, condition_of, labels_of

PACKAGE = "dask-gateway-server[kubernetes]==2026.3.0"
AGENT = "OpenAPI-Generator"
INSTANCE = "benchmark"
NAMESPACE = "gateway"
CLUSTERS = f"/apis/gateway.dask.org/v1alpha1/namespaces/{NAMESPACE}/daskclusters"
WORKERS = f"gateway.dask.org/instance={INSTANCE},app.kubernetes.io/component=dask-worker"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_KINDS = (
    ("gateway.dask.org", "DaskCluster", "daskclusters"),
    ("traefik.io", "IngressRoute", "ingressroutes"),
    ("traefik.io", "IngressRouteTCP", "ingressroutetcps"),
)
_CLUSTER = "gateway.dask.org/cluster"
# As its API server freezes them for each cluster; asked for here as by an admin who gives clusters the same sizes as ours.
_CONFIG = """
import json, sys
from dask_gateway_server.backends.kubernetes.backend import KubeClusterConfig
c = KubeClusterConfig(namespace=sys.argv[1], image="dask:1", worker_cores=0.25, scheduler_cores=0.25,
    worker_memory="256 M", scheduler_memory="256 M")
print(json.dumps(c.to_dict()))
"""
_SETTINGS = """
c.KubeController.address = "127.0.0.1:0"
c.KubeController.api_url = "http://127.0.0.1:8000/api"
c.KubeController.gateway_instance = "{instance}"
c.KubeController.log_level = "WARN"
{more}
"""
_UNLIMITED = "c.KubeController.k8s_api_rate_limit = 100_000\nc.KubeController.k8s_api_rate_limit_burst = 100_000"


def install(folder: Path) -> Path:
    """A virtual environment with dask-gateway in it."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    subprocess.run([str(folder / "bin" / "pip"), "install", "-q", PACKAGE], check=True)
    return folder


def cluster_config(environment: Path) -> Object:
    """What a DaskCluster carries as `spec.config`, made by dask-gateway's own code."""
    command = [str(environment / "bin" / "python"), "-c", _CONFIG, NAMESPACE]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    config: Object = json.loads(printed)
    return config


def cluster(config: Object, workers: int) -> Object:
    """As `KubeBackend.make_cluster_object` makes it, with the number of workers that its scheduler would ask for."""
    name = uuid.uuid4().hex
    labels = {"app.kubernetes.io/name": "dask-gateway", "gateway.dask.org/instance": INSTANCE, _CLUSTER: name}
    return {
        "apiVersion": "gateway.dask.org/v1alpha1",
        "kind": "DaskCluster",
        "metadata": {"name": name, "labels": labels},
        "spec": {"username": "alice", "options": {}, "config": config, "replicas": workers},
    }


@contextmanager
def controller(environment: Path, kubeconfig: Path, log: Path, *, limited: bool) -> Iterator["subprocess.Popen[bytes]"]:
    settings = log.with_suffix(".py")
    settings.write_text(_SETTINGS.format(instance=INSTANCE, more="" if limited else _UNLIMITED))
    command = [str(environment / "bin" / "dask-gateway-server"), "kube-controller", "-f", str(settings)]
    with process(command, log=log, env={"KUBECONFIG": str(kubeconfig)}) as started:
        yield started


async def furnish(client: Client) -> None:
    """The namespace and the definitions, as its Helm chart brings them."""
    await client.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    for group, kind, plural in _KINDS:
        schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        version: dict[str, Any] = {"name": "v1alpha1", "served": True, "storage": True, "schema": schema}
        version["subresources"] = {"status": {}}
        names = {"kind": kind, "plural": plural}
        spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}
        await client.create(_DEFINITIONS, {"metadata": {"name": f"{plural}.{group}"}, "spec": spec})


async def keep_endpoints(client: Client) -> None:
    """What the endpoints controller of a full cluster does for schedulers: once one is ready, its Service has an address."""
    selector = f"gateway.dask.org/instance={INSTANCE},app.kubernetes.io/component=dask-scheduler"
    pods, services = (Mirror(client, one, namespace=NAMESPACE, label_selector=selector) for one in (PODS, SERVICES))
    ready: dict[str, Object] = {}
    made: dict[str, Object] = {}
    news: asyncio.Queue[str] = asyncio.Queue()

    def look_at_pod(_: Object | None, pod: Object | None) -> None:
        if pod is not None and (condition_of(pod, "Ready") or {}).get("status") == "True":
            name = labels_of(pod)[_CLUSTER]
            ready.setdefault(name, pod)
            news.put_nowait(name)

    def look_at_service(_: Object | None, service: Object | None) -> None:
        if service is not None:
            name = labels_of(service)[_CLUSTER]
            made.setdefault(name, service)
            news.put_nowait(name)

    pods.subscribe(look_at_pod)
    services.subscribe(look_at_service)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(pods.run())
        tasks.create_task(services.run())
        while True:
            name = await news.get()
            if name in made and name in ready:
                await _publish(client, made.pop(name), ready[name])


async def _publish(client: Client, service: Object, pod: Object) -> None:
    ports = [{"name": port["name"], "port": port["port"], "protocol": "TCP"} for port in service["spec"]["ports"]]
    metadata = {"name": service["metadata"]["name"], "labels": service["metadata"]["labels"]}
    subset = {"addresses": [{"ip": pod["status"]["podIP"]}], "ports": ports}
    with contextlib.suppress(GridError):
        await client.create(f"/api/v1/namespaces/{NAMESPACE}/endpoints", {"metadata": metadata, "subsets": [subset]})


async def clear(client: Client) -> None:
    """Ends all clusters; what belongs to them goes with them."""
    for path in (CLUSTERS, f"/api/v1/namespaces/{NAMESPACE}/endpoints"):
        for obj in await client.list(path):
            await client.delete(f"{path}/{obj['metadata']['name']}", propagation="Background")
