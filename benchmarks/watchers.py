"""One program that keeps all pods of a namespace in memory, so that several ways to do that can be compared.

    python watchers.py ours|informer|watch|kubespawner KUBECONFIG NAMESPACE

Prints "synced" when it has them all. Runs until its standard input is closed; then prints one line of JSON: how many it holds, and
when, on the machine's monotonic clock, each restart count of 100,000 and more was in its memory. `kubespawner` runs in an
environment without this project, so nothing of it is imported before it is needed.
"""

import asyncio
import json
import os
import sys
import threading
import time
from typing import Any

_FIRST = 100_000
seen: dict[int, float] = {}


def note(restarts: int) -> None:
    if restarts >= _FIRST:
        seen.setdefault(restarts, time.perf_counter())


def note_raw(pod: dict[str, Any]) -> None:
    for status in pod.get("status", {}).get("containerStatuses") or ():
        note(status["restartCount"])


def note_model(pod: Any) -> None:
    for status in pod.status.container_statuses or ():
        note(status.restart_count)


async def closed_input() -> None:
    await asyncio.to_thread(sys.stdin.read)


async def ours(kubeconfig: str, namespace: str) -> int:
    """Reflector and store of a web process."""
    from grid.kube.credentials import CredentialSource
    from grid.kube.http import HttpKubeApi
    from grid.kube.hub import Hub
    from grid.kube.objects import Pod
    from grid.kube.reflector import ListWatch, Reflector
    from grid.kube.resources import PODS
    from grid.kube.store import Store

    class Noting(Store[Pod]):
        def apply(self, new: Pod) -> Any:
            result = super().apply(new)
            note_model(new)
            return result

    store = Noting("pods", indexes={"node": lambda pod: pod.spec.node_name})
    api = HttpKubeApi(CredentialSource(kubeconfig))
    task = asyncio.create_task(Reflector(api, ListWatch(PODS, Pod, namespace), store, Hub()).run())
    while not store.freshness(time.monotonic()).synced:  # noqa: ASYNC110  no event of it
        await asyncio.sleep(0.01)
    print("synced", flush=True)
    await closed_input()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await api.close()
    return len(store)


def informer(kubeconfig: str, namespace: str) -> int:
    """The official client's SharedInformer, with its models."""
    from kubernetes import client, config
    from kubernetes.informer import ADDED, MODIFIED, SharedInformer

    config.load_kube_config(kubeconfig)
    informs = SharedInformer(client.CoreV1Api().list_namespaced_pod, namespace=namespace)
    for kind in (ADDED, MODIFIED):
        informs.add_event_handler(kind, note_model)
    informs.start()
    while not informs.cache.list_keys():  # it is filled in one go
        time.sleep(0.05)
    print("synced", flush=True)
    sys.stdin.read()
    return len(informs.cache.list())


def watch(kubeconfig: str, namespace: str) -> int:
    """The official client's list and Watch, with a dictionary of its models."""
    from kubernetes import client, config
    from kubernetes.watch import Watch

    config.load_kube_config(kubeconfig)
    api = client.CoreV1Api()
    listed = api.list_namespaced_pod(namespace)
    pods = {pod.metadata.name: pod for pod in listed.items}
    version = listed.metadata.resource_version

    def follow() -> None:
        for event in Watch().stream(api.list_namespaced_pod, namespace, resource_version=version):
            pod = event["object"]
            if event["type"] == "DELETED":
                pods.pop(pod.metadata.name, None)
            else:
                pods[pod.metadata.name] = pod
                note_model(pod)

    threading.Thread(target=follow, daemon=True).start()
    print("synced", flush=True)
    sys.stdin.read()
    return len(pods)


async def kubespawner(kubeconfig: str, namespace: str) -> int:
    """KubeSpawner's reflector, as it is installed."""
    from kubernetes_asyncio import config  # type: ignore[import-not-found]
    from kubespawner.reflector import ResourceReflector  # type: ignore[import-not-found]

    class Noted(dict[str, Any]):
        def __setitem__(self, key: str, pod: dict[str, Any]) -> None:
            super().__setitem__(key, pod)
            note_raw(pod)

    class Pods(ResourceReflector):  # type: ignore[misc]
        resources: dict[str, Any]
        kind = "pods"
        api_group_name = "CoreV1Api"

        async def _list_and_update(self, resource_version: str | None = None) -> Any:
            version = await super()._list_and_update(resource_version)
            self.resources = Noted(self.resources)
            for pod in self.resources.values():
                note_raw(pod)  # it lists all anew every ten seconds without a change, and every thirty
            return version

    await config.load_kube_config(kubeconfig)
    reflector = Pods(namespace=namespace, request_timeout=600)
    await reflector.start()
    print("synced", flush=True)
    await closed_input()
    reflector.watch_task.cancel()
    return len(reflector.resources)


WAYS = {"ours": ours, "informer": informer, "watch": watch, "kubespawner": kubespawner}

if __name__ == "__main__":
    held = WAYS[sys.argv[1]](sys.argv[2], sys.argv[3])
    count = asyncio.run(held) if asyncio.iscoroutine(held) else held
    print(json.dumps({"held": count, "seen": seen}), flush=True)
    os._exit(0)  # threads of the official client do not end by themselves
