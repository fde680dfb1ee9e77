"""How the leader asks the database: work goes in as a function, so that tests answer in their own thread and in virtual time."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Database(Protocol):
    """Runs a synchronous function of `ledger` or `admission`, with its own connection to the database."""

    def __call__(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Awaitable[T]: ...


@dataclass(frozen=True, slots=True)
class Databases:
    """The database for each kind of the controller's work, none of which waits behind another; polls admit."""

    reconciles: Database
    polls: Database
    due_work: Database

    @classmethod
    def shared(cls, database: Database) -> "Databases":
        """Return one that gives all kinds of work the same database, as tests do."""
        return cls(database, database, database)
