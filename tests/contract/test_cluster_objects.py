"""The objects that on-demand clusters are made of are accepted as they are, and are kept as they were given."""

from ipaddress import ip_network
from typing import Any

import pytest

from grid.clusters.manifests import first, workers
from grid.core.egress import read_egress
from grid.executions import ingress
from grid.executions.manifests import Manifest
from grid.executions.policykeeper import build_for_all
from grid.executions.spec import ScalingSpec
from tests.clusters.cluster_specs import cluster, spec
from tests.contract.client import Client
from tests.executions.test_front import INGRESS_FRONT

# Fields that servers before 1.27 do not know and drop.
NEWER = {"unhealthyPodEvictionPolicy"}


def lost(given: Any, kept: Any, path: str = "") -> list[str]:
    """Where the server keeps something else than it was given; what it adds does not count."""
    if isinstance(given, dict) and isinstance(kept, dict):
        return [
            where
            for key, value in given.items()
            if key not in NEWER
            for where in lost(value, kept.get(key), f"{path}.{key}")
        ]
    if path.endswith(".metrics"):  # servers before 1.30 keep them in an order of their own
        return [
            f"{path}: {metric!r} is gone" for metric in given if all(lost(metric, kept_metric) for kept_metric in kept)
        ]
    if isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        return [
            where
            for n, (given_item, kept_item) in enumerate(zip(given, kept, strict=True))
            for where in lost(given_item, kept_item, f"{path}[{n}]")
        ]
    # An empty value is the same as none.
    return [] if given == kept or (not given and kept is None) else [f"{path}: {given!r} became {kept!r}"]


@pytest.mark.parametrize("framework", ["dask", "ray", "spark"])
async def test_cluster_objects_are_kept_as_given(
    client: Client, namespace: str, framework: str, version: tuple[int, int]
) -> None:
    scaling = ScalingSpec(on_demand=True, up_workers=0, down_percent=0)
    for local_storage in ("", "20Gi") if version >= (1, 23) else ("",):
        of = spec(
            id=f"{framework}{len(local_storage)}", of=cluster(framework, scaling=scaling, local_storage=local_storage)
        )
        for manifest in [
            *first(of, namespace=namespace, anchor_uid="7e1c2d5e-0000-4000-8000-000000000000"),
            *workers(of, namespace=namespace, anchor_uid="", head_address="10.0.0.9"),
        ]:
            answer = await client.request(
                "POST", manifest.resource.path(namespace=namespace), body=manifest.body, query={"dryRun": "All"}
            )
            assert lost(manifest.body, answer.ok(201)) == [], about(manifest)


async def test_the_policies_of_executions_are_kept_to_the_letter(client: Client, namespace: str) -> None:
    """Else the controller would find a difference, and write them anew each minute."""
    egress, _ = read_egress(["0.0.0.0/0", "::/0", "203.0.113.0/24"], ["10.20.0.0/28:9000", "[fd12::5]:443"])
    for manifest in build_for_all(namespace, egress.openings([ip_network("34.1.2.3"), ip_network("10.20.0.7")])):
        answer = await client.request(
            "POST", manifest.resource.path(namespace=namespace), body=manifest.body, query={"dryRun": "All"}
        )
        assert answer.ok(201)["spec"] == manifest.body["spec"], about(manifest)


async def test_ingress_and_services_are_accepted_unchanged(client: Client, namespace: str) -> None:
    for manifest in ingress.objects(spec(kind="workspace", cluster=None, front=INGRESS_FRONT), namespace=namespace):
        answer = await client.request(
            "POST", manifest.resource.path(namespace=namespace), body=manifest.body, query={"dryRun": "All"}
        )
        assert lost(manifest.body, answer.ok(201)) == [], about(manifest)


def about(manifest: Manifest) -> str:
    return f"{manifest.resource.kind} {manifest.name}"
