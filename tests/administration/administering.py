"""What an admin types for page tests, and the version of what they opened, without which nothing is changed."""

from typing import Any

from django.test import Client

TIER: dict[str, Any] = {
    "id": "small",
    "name": "Small",
    "node_pool": "default",
    "cores": "1",
    "memory": "4Gi",
    "ephemeral_storage": "10Gi",
    "gpus": "0",
    "gpu_resource": "nvidia.com/gpu",
    "cost_per_hour": "0.1",
    "is_visible": "on",
}
CLUSTER_ENVIRONMENT = {"id": "dask", "name": "Dask", "kind": "cluster", "image": "dask:1"}


def version_of(client: Client, path: str) -> str:
    return str(client.get(path).context["version"])
