"""On-demand clusters as a kind of executions: a head and workers, alone or with a workspace or job."""

from collections.abc import Iterable, Mapping

from grid.clusters import manifests, status
from grid.clusters.frameworks import framework
from grid.clusters.frameworks.base import cluster_of
from grid.clusters.reconcile import Clusters
from grid.clusters.request import cluster_spec, validate_cluster
from grid.core.errors import Problem
from grid.diagnosis.launchfit import Pools
from grid.executions.context import Context
from grid.executions.kinds import ExecutionKind
from grid.executions.launchrequest import LaunchRequest, StoredRows
from grid.executions.launchsettings import LaunchSettings
from grid.executions.manifests import Manifest
from grid.executions.spec import ExecutionSpec, serialize_spec
from grid.executions.storage import Storage
from grid.models import Execution

HEAD_ADDRESS = "address-of-the-head"  # in a preview; it is known once the head's Service exists


class ClusterKind(ExecutionKind):
    is_one_pod = False
    has_front = False

    def problems(self, request: LaunchRequest, stored: StoredRows, pools: Pools | None) -> Iterable[Problem]:
        return validate_cluster(request, pools=pools)

    def draft(self, execution: Execution, request: LaunchRequest, stored: StoredRows, central: LaunchSettings) -> None:
        cluster = request.cluster
        assert cluster is not None, "checked before"
        execution.environment_id = cluster.environment.pk
        execution.tier_id = cluster.tier.pk
        execution.head_tier_id = cluster.head_tier.pk
        execution.slots = cluster.slots
        execution.reason_values = {"slots": cluster.slots}
        spec = cluster_spec(cluster, attached_to=execution.attached_to_id or "")
        serialize_spec(execution, central=central, secrets=stored.secrets, cluster=spec)

    def objects(
        self, spec: ExecutionSpec, *, namespace: str, storage: Storage, token: str, client_variables: Mapping[str, str]
    ) -> list[Manifest]:
        first = manifests.first(spec, namespace=namespace, storage=storage)
        return [*first, *manifests.workers(spec, namespace=namespace, anchor_uid="", head_address=HEAD_ADDRESS)]

    def strategy(self, context: Context) -> Clusters:
        return Clusters(context)

    def client_variables(self, spec: ExecutionSpec, stored_status: object) -> Mapping[str, str] | None:
        address = status.read(stored_status).head_address
        return variables_of_clients(spec, address) if address else None

    def planned_variables(self, spec: ExecutionSpec) -> Mapping[str, str]:
        return variables_of_clients(spec, HEAD_ADDRESS)


def variables_of_clients(spec: ExecutionSpec, head_address: str) -> Mapping[str, str]:
    return framework(cluster_of(spec).framework).client_variables(spec, head_address)
