"""The kinds of executions: how each is validated, specified, made in the cluster, and followed there. `manifests`, `preview` and
`reconcile` ask the kind, and know none by name; `request` knows clusters, which are launched beside others. A room defines its kind by a
subclass, which `grid.composition` registers; of most kinds an execution is one pod (`grid.executions.podkind`). How the dashboard shows a
kind is registered there (`dashboard.executions.kinds`)."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal

from grid.core.errors import Problem
from grid.diagnosis.launchfit import Pools
from grid.executions.launchrequest import LaunchRequest, StoredRows
from grid.executions.launchsettings import LaunchSettings
from grid.executions.spec import ExecutionSpec
from grid.models import Execution

if TYPE_CHECKING:  # these ask the kinds, and would be imported in a circle
    from grid.executions.context import Context
    from grid.executions.manifests import Manifest
    from grid.executions.reconcile import Objects
    from grid.executions.storage import Storage

NO_VARIABLES: Mapping[str, str] = {}


class ExecutionKind(ABC):
    """A kind of executions."""

    restart_policy: Literal["Never", "OnFailure"] = "OnFailure"  # of its pod, when the program ends in an error
    starts_at_home = False  # in HOME with a folder for sockets and JupyterLab's settings, else in the project's files
    is_ready_when_it_answers = True  # with a port: its page is waited for, else it runs as soon as its program does
    is_one_pod = True  # named as the execution; else a head and workers
    has_front = True  # nginx may stand before its web page
    takes_cluster = False  # may be launched with a cluster of its own

    def __init__(self, name: str) -> None:
        self.name = name

    @abstractmethod
    def problems(self, request: LaunchRequest, stored: StoredRows, pools: Pools | None) -> Iterable[Problem]:
        """Return what is wrong with the kind's part of a request; with `pools` also that a tier fits no node."""

    @abstractmethod
    def draft(self, execution: Execution, request: LaunchRequest, stored: StoredRows, central: LaunchSettings) -> None:
        """Fill in a new row, which is valid, and freeze its spec. Nothing is stored."""

    def store(self, execution: Execution, request: LaunchRequest) -> None:  # noqa: B027 - most kinds have no rows of their own
        """Store the rows that belong to the execution, in the transaction that stores it afterwards."""

    @abstractmethod
    def objects(
        self,
        spec: ExecutionSpec,
        *,
        namespace: str,
        storage: "Storage",
        token: str,
        client_variables: Mapping[str, str],
    ) -> "list[Manifest]":
        """Return the objects that a launch creates, in the order of creation, without references to an owner that does not exist yet.
        `client_variables` are those by which its program finds its cluster."""

    @abstractmethod
    def strategy(self, context: "Context") -> "Objects":
        """Return how its executions are made and followed in the cluster during one term of leadership."""

    def client_variables(self, spec: ExecutionSpec, stored_status: object) -> Mapping[str, str] | None:
        """Return the variables by which a program finds such an execution, by its spec and stored status; None while it has no address."""
        return NO_VARIABLES

    def planned_variables(self, spec: ExecutionSpec) -> Mapping[str, str]:
        """Return the same before there is an address, for a preview."""
        return NO_VARIABLES


_KINDS: dict[str, ExecutionKind] = {}


def register(kind: ExecutionKind) -> None:
    """Add a kind; raise ValueError when there is another one of this name."""
    if type(_KINDS.setdefault(kind.name, kind)) is not type(kind):
        raise ValueError(f"the kind {kind.name} is registered twice")


def kind_of(name: str) -> ExecutionKind:
    """Return the kind of this name; raise LookupError when there is none."""
    return _KINDS[name]


def is_registered(name: str) -> bool:
    return name in _KINDS


def all_kinds() -> list[ExecutionKind]:
    """Return the kinds in the order in which they are registered."""
    return list(_KINDS.values())
