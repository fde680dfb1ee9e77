"""Kubernetes' Deployment and ReplicaSet controllers for the fake cluster, one round at a time.

Each Deployment has one ReplicaSet, which makes and removes pods until there are as many as wanted: those that cost least go first. A
change of the template replaces all pods. Whoever deletes the Deployment takes everything along, as the fake's garbage collection does.
"""

import copy
import hashlib

import msgspec

from grid.core.labels import POD_DELETION_COST
from grid.kube.objects import RawObject
from grid.kube.resources import DEPLOYMENTS, PODS, REPLICA_SETS
from tests.support.builders import NAMESPACE, metadata
from tests.support.cluster import FakeCluster


class Deployments:
    """`refused` is why no pod can be made at the moment; then there are none but a word about it in the ReplicaSet's events."""

    def __init__(self, cluster: FakeCluster) -> None:
        self._cluster = cluster
        self._made = 0
        self.refused = ""

    def round(self) -> None:
        for deployment in self._cluster.objects(DEPLOYMENTS):
            self._keep(self._replica_set(deployment), deployment["spec"])

    def _replica_set(self, deployment: RawObject) -> RawObject:
        meta, template = deployment["metadata"], deployment["spec"]["template"]
        digest = hashlib.sha256(msgspec.json.encode(template, order="sorted")).hexdigest()[:8]
        name = f"{meta['name']}-{digest}"
        for old in self._owned(REPLICA_SETS.kind, deployment):
            if old["metadata"]["name"] == name:
                return old
            self._cluster.remove(REPLICA_SETS, old["metadata"]["name"], namespace=meta["namespace"])
        labels = template["metadata"]["labels"]
        named = _new(metadata(name, namespace=meta["namespace"], labels=labels, owner=deployment))
        kind = {"apiVersion": REPLICA_SETS.api_version, "kind": REPLICA_SETS.kind}
        return self._cluster.put(REPLICA_SETS, {**kind, "metadata": named, "spec": {"template": template}})

    def _keep(self, replica_set: RawObject, spec: RawObject) -> None:
        pods = [pod for pod in self._owned(PODS.kind, replica_set) if _lives(pod)]
        for _ in range(0 if self.refused else spec["replicas"] - len(pods)):
            self._make(replica_set)
        for pod in sorted(pods, key=_goes_first)[: max(0, len(pods) - spec["replicas"])]:
            self._cluster.server.delete(PODS, pod["metadata"]["name"], NAMESPACE)

    def _make(self, replica_set: RawObject) -> None:
        self._made += 1
        template = copy.deepcopy(replica_set["spec"]["template"])
        meta = replica_set["metadata"]
        made = metadata(f"{meta['name']}-{self._made:05d}", namespace=meta["namespace"], owner=replica_set)
        named = _new({**made, **template["metadata"]})
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": named, "spec": template["spec"]}
        self._cluster.put(PODS, pod)

    def _owned(self, kind: str, owner: RawObject) -> list[RawObject]:
        resource = PODS if kind == PODS.kind else REPLICA_SETS
        uid = owner["metadata"]["uid"]
        return [
            owned
            for owned in self._cluster.objects(resource)
            if any(reference["uid"] == uid for reference in owned["metadata"].get("ownerReferences", ()))
        ]


def _new(meta: RawObject) -> RawObject:
    """The cluster gives out the rest."""
    return {key: value for key, value in meta.items() if key not in ("uid", "creationTimestamp")}


def _lives(pod: RawObject) -> bool:
    return "deletionTimestamp" not in pod["metadata"] and pod.get("status", {}).get("phase") not in (
        "Failed",
        "Succeeded",
    )


def _goes_first(pod: RawObject) -> tuple[bool, int]:
    cost = int(pod["metadata"].get("annotations", {}).get(POD_DELETION_COST, "0"))
    return pod.get("status", {}).get("phase") == "Running", cost
