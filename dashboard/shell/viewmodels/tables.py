"""How a person wants to see the large tables: which columns, and how dense; pure. The browser keeps it in cookies."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from grid.core.translation import gettext as _

# The columns of each table in their order. The first one, the name, is always shown.
TABLES: Mapping[str, tuple[str, ...]] = {
    "executions": (
        _("Name"),
        _("Type"),
        _("Status"),
        _("Tier"),
        _("User"),
        _("Project"),
        _("Node"),
        _("Age"),
        _("Restarts"),
        _("CPU"),
        _("Memory"),
        _("GPUs"),
    ),
    "nodes": (
        _("Name"),
        _("Pool"),
        _("Instance type"),
        _("State"),
        _("Age"),
        _("Pods"),
        _("CPU"),
        _("Memory"),
        _("GPUs"),
        _("Last 30 min"),
        _("Removal"),
    ),
}
DENSITY_COOKIE = "density"
COMPACT = "compact"


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """A column that may be hidden; `number` is its place, 1 for the first."""

    number: int
    title: str
    is_shown: bool


@dataclass(frozen=True, slots=True)
class TableView:
    """A table's columns and density; `css` are the classes that make them so."""

    table: str
    is_compact: bool
    columns: tuple[ColumnChoice, ...]

    @property
    def css(self) -> str:
        hidden = [f"hide-{column.number}" for column in self.columns if not column.is_shown]
        return " ".join([*([COMPACT] if self.is_compact else []), *hidden])


def hidden_cookie(table: str) -> str:
    """Return the name of the cookie with the table's hidden columns."""
    return f"hidden-{table}"


def table_view(table: str, cookies: Mapping[str, str]) -> TableView:
    """Return how to show the table; what is wrong in a cookie is ignored."""
    hidden = set(cookies.get(hidden_cookie(table), "").split("."))
    columns = tuple(
        ColumnChoice(number, title, str(number) not in hidden)
        for number, title in enumerate(TABLES[table], start=1)
        if number > 1
    )
    return TableView(table, cookies.get(DENSITY_COOKIE) == COMPACT, columns)


def hidden_columns(table: str, shown: Collection[str]) -> str:
    """Return the cookie's value for the columns whose numbers are not among `shown`."""
    numbers = range(2, len(TABLES[table]) + 1)
    return ".".join(str(number) for number in numbers if str(number) not in shown)
