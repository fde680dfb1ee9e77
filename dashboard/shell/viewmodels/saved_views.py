"""How a person wants to see the large tables: which columns and how dense, which the browser keeps in cookies, and saved views; pure."""

from collections.abc import Callable, Collection, Mapping, Sequence
from urllib.parse import parse_qsl

from dashboard.shell.viewmodels.live import ViewModel
from grid.core.translation import gettext as _

# The columns of each table in their order. The first one, the name, is always shown.
TABLES: Mapping[str, tuple[str, ...]] = {
    "executions": (
        *(_("Name"), _("Type"), _("Status"), _("Tier"), _("User"), _("Project")),
        *(_("Node"), _("Age"), _("Restarts"), _("CPU"), _("Memory"), _("GPUs")),
    ),
    "nodes": (
        *(_("Name"), _("Pool"), _("Instance type"), _("State"), _("Age"), _("Pods")),
        *(_("CPU"), _("Memory"), _("GPUs"), _("Last 30 min"), _("Removal")),
    ),
}
DENSITY_COOKIE = "density"
COMPACT = "compact"
NAME_LENGTH = 60
_MOST_PARAMETERS = 50
_QUERY_LENGTH = 20_000


class ColumnChoice(ViewModel, frozen=True, gc=False):
    """A column that may be hidden; `number` is its place, 1 for the first."""

    number: int
    title: str
    is_shown: bool


class TableView(ViewModel, frozen=True, gc=False):
    """A table's columns and density; `css` are the classes that make them so."""

    table: str
    is_compact: bool
    columns: tuple[ColumnChoice, ...]

    @property
    def css(self) -> str:
        hidden = [f"hide-{column.number}" for column in self.columns if not column.is_shown]
        return " ".join([*([COMPACT] if self.is_compact else []), *hidden])


def hidden_cookie(table: str) -> str:
    return f"hidden-{table}"


def table_view(table: str, cookies: Mapping[str, str]) -> TableView:
    """Return how to show the table; what is wrong in a cookie is ignored."""
    hidden = set(cookies.get(hidden_cookie(table), "").split("."))
    others = enumerate(TABLES[table][1:], start=2)
    columns = tuple(ColumnChoice(number, title, str(number) not in hidden) for number, title in others)
    return TableView(table, cookies.get(DENSITY_COOKIE) == COMPACT, columns)


def hidden_columns(table: str, shown: Collection[str]) -> str:
    """Return the cookie's value for the columns whose numbers are not among `shown`."""
    numbers = range(2, len(TABLES[table]) + 1)
    return ".".join(str(number) for number in numbers if str(number) not in shown)


class ViewedTable(ViewModel, frozen=True, gc=False):
    """A table, the URL name of its page, and `columns`, its name in `TABLES` where columns can be hidden. `query` returns the query string
    of the first page of what the page makes of somebody's parameters."""

    title: str
    route: str
    query: Callable[[Mapping[str, str]], str]
    columns: str = ""
    is_for_observers: bool = False


VIEWED_TABLES: dict[str, ViewedTable] = {}  # by name; each room that has one adds it in `dashboard.composition`


class ViewLink(ViewModel, frozen=True, gc=False):
    id: int
    name: str
    is_default: bool
    is_current: bool


class ViewMenu(ViewModel, frozen=True, gc=False):
    """The menu: the saved views of a table, and the page's present `query`, which can be saved."""

    table: str
    title: str
    query: str
    links: Sequence[ViewLink]

    @property
    def is_default(self) -> bool:
        """Whether the page opens with the view that it shows."""
        return any(link.is_default for link in self.links if link.is_current)

    @property
    def current(self) -> str:
        return next((link.name for link in self.links if link.is_current), "")


def checked_query(table: str, query: str) -> str:
    """Return `query` as the table's page understands it; what the page does not know is left out. Raise ValueError when it is too long."""
    if len(query) > _QUERY_LENGTH:
        raise ValueError(_("This view is too long to be saved."))
    parameters = parse_qsl(query.removeprefix("?"), keep_blank_values=True, max_num_fields=_MOST_PARAMETERS)
    return VIEWED_TABLES[table].query(dict(parameters))


def checked_name(name: str) -> str:
    """Return the name without what cannot be seen. Raise ValueError when nothing is left, or too much."""
    visible = " ".join("".join(letter for letter in name if letter.isprintable() or letter.isspace()).split())
    if not visible:
        raise ValueError(_("Give the view a name."))
    if len(visible) > NAME_LENGTH:
        raise ValueError(_("A name has at most {count} characters.", count=NAME_LENGTH))
    return visible
