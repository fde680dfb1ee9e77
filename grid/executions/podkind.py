"""A kind of which an execution is one pod, with a tier and an environment of its own: workspaces, jobs and apps."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from grid.core.errors import Problem
from grid.core.translation import gettext as _
from grid.diagnosis.launchfit import Pools
from grid.executions import ingress, kinds, manifests
from grid.executions.context import Context
from grid.executions.kinds import ExecutionKind
from grid.executions.launchrequest import LaunchRequest, StoredRows, wrong_tier
from grid.executions.launchsettings import LaunchSettings
from grid.executions.manifests import Manifest
from grid.executions.runs import FileSaver, Runs
from grid.executions.spec import ExecutionSpec, JobSpec, serialize_spec
from grid.executions.storage import Storage
from grid.models import Environment, Execution, Kind


class PodKind(ExecutionKind):
    """A kind of one pod; `saving` makes what saves the files of its executions during one term of leadership."""

    def __init__(self, name: str, saving: Callable[[Context], FileSaver]) -> None:
        super().__init__(name)
        self._saving = saving

    def problems(self, request: LaunchRequest, stored: StoredRows, pools: Pools | None) -> Iterator[Problem]:
        yield from _wrong_environment(request, stored)
        if problem := wrong_tier(request.owner, stored.tier, request.kind):
            yield problem
        yield from self.own_problems(request, stored)
        if request.cluster is not None:
            yield from kinds.kind_of(Kind.CLUSTER).problems(request, stored, pools)

    def own_problems(self, request: LaunchRequest, stored: StoredRows) -> Iterable[Problem]:
        """Return what is wrong with what this kind asks beside a tier and an environment."""
        return ()

    def draft(self, execution: Execution, request: LaunchRequest, stored: StoredRows, central: LaunchSettings) -> None:
        assert stored.environment is not None and stored.tier is not None, "checked before"
        execution.environment, execution.tier = stored.environment, stored.tier
        execution.workspace = request.workspace
        serialize_spec(
            execution,
            central=central,
            secrets=stored.secrets,
            job=self.job_spec(execution, request),
            environment=request.pinned,
            details=request.details,
            has_front=self.has_front,
        )

    def job_spec(self, execution: Execution, request: LaunchRequest) -> JobSpec | None:
        """Return the part of the spec that only jobs have."""
        return None

    def objects(
        self, spec: ExecutionSpec, *, namespace: str, storage: Storage, token: str, client_variables: Mapping[str, str]
    ) -> list[Manifest]:
        made = manifests.build(
            spec, namespace=namespace, token=token, storage=storage, client_variables=client_variables
        )
        return [*made, *ingress.objects(spec, namespace=namespace)]

    def strategy(self, context: Context) -> Runs:
        return Runs(context, self._saving(context))


def environment_problem(environment: Environment | None) -> Problem | None:
    """Return why nobody may launch in the environment, given as it is stored, or None when it is not there; None when people may."""
    if environment is None or environment.is_archived or not environment.is_visible:
        return Problem("environment", _("This environment is no longer available; choose another."), "not_offered")
    return None


def _wrong_environment(request: LaunchRequest, stored: StoredRows) -> Iterator[Problem]:
    environment = stored.environment
    if problem := environment_problem(environment):
        yield problem
    elif environment is not None and environment.kind != request.kind:
        made_for = Kind(environment.kind).label.lower()
        sentence = _("{name} is for the kind “{kind}”; choose another.", name=environment.name, kind=made_for)
        yield Problem("environment", sentence, "kind")
