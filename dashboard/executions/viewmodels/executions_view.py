"""Parses the URL of the Executions page: filters by column and free text, sort, page, running or ended; pure.

An invalid choice means the default; an invalid bound is reported at its field, because a filter that silently does not filter
misleads.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from dashboard.shell.viewmodels.listing import FilterChip
from dashboard.shell.viewmodels.saved_views import ViewedTable
from dashboard.shell.viewmodels.states import ACTIVE_STATES, ENDED_STATES, KINDS
from grid.core.quantity import millicores, whole
from grid.core.regexes import Expression
from grid.core.translation import gettext as _

TROUBLE = "trouble"
SORTS = ("name", "kind", "tier", "user", "project", "status", "node", "age", "restarts", "cpu", "memory", "gpus")
_TEXTS = ("text", "tier", "user", "project", "node")
_BOUND_TITLES = {"age": _("Age"), "restarts": _("Restarts"), "cpu": _("CPU"), "memory": _("Memory"), "gpus": _("GPUs")}
_BOUNDS = tuple(_BOUND_TITLES)
_LENGTH = 100
_AGE = Expression(r"(\d{1,6})\s*(s|m|min|h|d)?")
_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 60 * 60, "d": 24 * 60 * 60}


@dataclass(frozen=True, slots=True)
class ExecutionsView:
    """The page's URL as values; a bound is a row's minimum, "" for none. A page of ended ones begins `before` or `after` a position."""

    show: str = ""
    text: str = ""
    kind: str = ""
    tier: str = ""
    user: str = ""
    project: str = ""
    status: str = ""
    node: str = ""
    age: str = ""
    restarts: str = ""
    cpu: str = ""
    memory: str = ""
    gpus: str = ""
    sort: str = "age"
    descending: bool = False
    page: int = 1
    before: str = ""
    after: str = ""

    @classmethod
    def parse(cls, query: Mapping[str, Any]) -> "ExecutionsView":
        def of(name: str) -> str:
            return str(query.get(name, "")).replace("\x00", "")[:_LENGTH].strip()

        show = "ended" if of("show") == "ended" else ""
        sort, page = of("sort"), of("page")
        known = not show and sort.removeprefix("-") in SORTS
        states = {**ENDED_STATES} if show else {**ACTIVE_STATES, TROUBLE: ""}
        return cls(
            show=show,
            kind=of("kind") if of("kind") in KINDS else "",
            status=of("status") if of("status") in states else "",
            sort=sort.removeprefix("-") if known else ("ended" if show else "age"),
            descending=known and sort.startswith("-"),
            page=max(1, int(page)) if page.isascii() and page.isdigit() and len(page) < 6 else 1,
            before=of("before") if show else "",
            after=of("after") if show else "",
            **{name: of(name) for name in (*_TEXTS, *_BOUNDS)},
        )

    def query(self, **changed: Any) -> str:
        """Return the query string with the changes, without defaults; not an empty one, because that may open a saved view."""
        new = replace(self, **changed)
        names = ("show", "text", "kind", "tier", "user", "project", "status", "node", *_BOUNDS, "before", "after")
        parts = {name: getattr(new, name) for name in names if getattr(new, name)}
        if new.sort_parameter != ("ended" if new.show else "age") or (new.page == 1 and not parts.keys() - {"show"}):
            parts["sort"] = new.sort_parameter
        if new.page > 1:
            parts["page"] = str(new.page)
        return "?" + urlencode(parts)

    @property
    def sort_parameter(self) -> str:
        """The sort for the form's hidden field, with "-" in front when it is descending."""
        return ("-" if self.descending else "") + self.sort

    @property
    def is_filtered(self) -> bool:
        return any(getattr(self, name) for name in (*_TEXTS, *_BOUNDS, "kind", "status"))

    @property
    def has_bounds(self) -> bool:
        return any(getattr(self, name) for name in _BOUNDS)

    @property
    def cleared(self) -> str:
        return ExecutionsView.parse({"show": self.show}).query()


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds as numbers; None for no bound. `problems` pairs a field with the sentence shown at it."""

    age: timedelta | None = None
    restarts: int | None = None
    cpu: int | None = None
    memory: int | None = None
    gpus: int | None = None
    problems: tuple[tuple[str, str], ...] = ()


def bounds(view: ExecutionsView) -> Bounds:
    """Return the view's bounds. An invalid one does not filter, and is among the problems."""
    limits: dict[str, Any] = {}
    problems: list[tuple[str, str]] = []
    for name, read in _READERS.items():
        text = getattr(view, name)
        try:
            limits[name] = read(text) if text else None
        except ValueError as error:
            problems.append((name, str(error)))
        except ArithmeticError:
            problems.append((name, _("“{text}” is too large.", text=text)))
    return Bounds(**limits, problems=tuple(problems))


@dataclass(frozen=True, slots=True)
class Choices:
    """The choices of the filter's lists as (value, words), from executions that the viewer may see only."""

    tiers: tuple[tuple[str, str], ...]
    users: tuple[tuple[str, str], ...]
    projects: tuple[tuple[str, str], ...]


def offered(pairs: Iterable[tuple[str, str]], wanted: str) -> tuple[tuple[str, str], ...]:
    """Return each choice once, sorted by its words. The URL's value is always included, so that a shared link shows its filter."""
    known = dict(pairs)
    if wanted:
        known.setdefault(wanted, wanted)
    return tuple(sorted(known.items(), key=lambda pair: pair[1].lower()))


def filter_chips(view: ExecutionsView, choices: Choices, states: Mapping[str, str]) -> tuple[FilterChip, ...]:
    """Return the view's conditions, each with the way to drop it alone."""
    named = {
        "kind": (_("Type"), KINDS),
        "status": (_("Status"), states),
        "tier": (_("Tier"), dict(choices.tiers)),
        "user": (_("User"), dict(choices.users)),
        "project": (_("Project"), dict(choices.projects)),
    }
    chips = []
    for name in ("text", "kind", "status", "tier", "user", "project", "node", *_BOUNDS):
        value = getattr(view, name)
        if not value:
            continue
        if name in named:
            title, words = named[name]
            text = f"{title}: {words.get(value, value)}"
        elif name in _BOUNDS:
            text = _("{column} at least {value}", column=_BOUND_TITLES[name], value=value)
        else:
            text = f"“{value}”" if name == "text" else _("Node: {value}", value=value)
        chips.append(FilterChip(text, view.query(**{name: "", "page": 1, "before": "", "after": ""})))
    return tuple(chips)


def _age(text: str) -> timedelta:
    match = _AGE.fullmatch(text)
    if match is None:
        raise ValueError(_("“{text}” is not an age; write for example 90 s, 15 min, 2 h or 1 d", text=text))
    number, unit = match.groups()
    return timedelta(seconds=int(number) * _SECONDS[unit or "min"])


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise ValueError(_("“{text}” is not a whole number", text=text))
    return int(text)


_READERS: Mapping[str, Callable[[str], Any]] = {
    "age": _age, "restarts": _count, "cpu": millicores, "memory": whole, "gpus": _count,
}  # fmt: skip


def _viewed(title: str, show: str, columns: str = "") -> ViewedTable:
    def query(asked: Mapping[str, str]) -> str:
        return ExecutionsView.parse({**asked, "show": show}).query(page=1, before="", after="")

    return ViewedTable(title, "executions", query, columns)


VIEWED_TABLES = {
    "executions": _viewed(_("Executions"), "", "executions"),
    "ended": _viewed(_("Ended executions"), "ended"),
}
