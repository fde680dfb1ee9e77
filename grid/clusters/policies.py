"""The NetworkPolicies of a cluster beyond those of every execution: its pods reach each other and the workspace or job that it belongs to,
the proxy reaches the head's page, and the controller polls the head.

They are owned by the cluster's anchor. The workspace's side is here too, because the workspace's own objects do not know its cluster.
"""

from grid.clusters.frameworks import framework
from grid.core.labels import APP_COMPONENT, HEAD, KEYS
from grid.executions.manifests import Manifest, metadata
from grid.executions.networkpolicy import build_policy, system_peer
from grid.executions.spec import ClusterSpec, ExecutionSpec
from grid.kube.objects import RawObject


def head_policy_name(cluster_id: str) -> str:
    return f"cluster-{cluster_id}-head"


def client_policy_name(cluster_id: str) -> str:
    return f"cluster-{cluster_id}-client"


def build(spec: ExecutionSpec, cluster: ClusterSpec, *, namespace: str, anchor_uid: str) -> list[Manifest]:
    kind, client = framework(cluster.framework), cluster.attached_to
    members, clients = _pods_of(spec.id), [_pods_of(client)] if client else []
    page = {
        "from": [system_peer("proxy"), system_peer("controller")],
        "ports": [{"protocol": "TCP", "port": kind.ui_port}],
    }
    policies = [
        build_policy(
            metadata(spec, namespace, anchor_uid),
            members["podSelector"],
            ingress=[{"from": [members, *clients]}],
            egress=[{"to": [members, *(clients if kind.calls_back else ())]}],
        ),
        build_policy(
            metadata(spec, namespace, anchor_uid, name=head_policy_name(spec.id)),
            {"matchLabels": {KEYS.execution: spec.id, APP_COMPONENT: HEAD}},
            ingress=[page],
        ),
    ]
    if client:
        policies.append(
            build_policy(
                metadata(spec, namespace, anchor_uid, name=client_policy_name(spec.id)),
                clients[0]["podSelector"],
                ingress=[{"from": [members]}] if kind.calls_back else None,
                egress=[{"to": [members]}],
            )
        )
    return policies


def _pods_of(execution_id: str) -> RawObject:
    return {"podSelector": {"matchLabels": {KEYS.execution: execution_id}}}
