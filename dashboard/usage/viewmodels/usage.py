"""Usage of the cluster: what was held and what it cost, by month and day of UTC, and by project, tier, kind and person; pure."""

import calendar
import csv
import io
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import NamedTuple
from urllib.parse import urlencode

from dashboard.shell.viewmodels.format import percent, price_number, spreadsheet_text
from dashboard.shell.viewmodels.listing import FilterChip
from dashboard.shell.viewmodels.live import ViewModel
from dashboard.shell.viewmodels.states import KINDS
from grid.core.translation import gettext as _, ngettext
from grid.core.wording import CURRENCY, day_words, money, month_words

MONTHS = 12
SHOWN = 50  # lines of a table
_BY_PERSON = _("By person")
_HOUR = Decimal(3600)
_MILLI = 1000
_TENTH = Decimal("0.1")
# What a page can be narrowed to: the parameter of its query, and the column.
NARROWING = {"project": "project_id", "tier": "tier_id", "pool": "node_pool"}
_NARROWED_WORDS = {"project": _("Project"), "tier": _("Hardware tier"), "pool": _("Node pool")}
_LONGEST_VALUE = 100
SORTS = {"cost": _("Cost"), "pods": _("Pod hours"), "cores": _("Core hours"), "gpus": _("GPU hours")}


class HeldTime(NamedTuple):
    """The time for which pods of one key held nodes on one day, multiplied by what they held. Names may occur several times, ids do not.
    `kind` is "" where it is not asked for, and for executions that were deleted before it was kept."""

    day: date
    user_id: int
    username: str
    project_id: str
    project: str
    tier_id: str
    tier: str
    node_pool: str
    kind: str
    price_per_hour: Decimal
    pod_seconds: int
    millicore_seconds: int
    gpu_seconds: int


class UsageTotal(ViewModel, frozen=True, gc=False):
    """A sum. The cost is exact; the hours are too."""

    cost: Decimal = Decimal(0)
    pods: Decimal = Decimal(0)
    cores: Decimal = Decimal(0)
    gpus: Decimal = Decimal(0)

    def sorted_by(self, column: str) -> Decimal:
        """Return the value of one of the columns that tables are sorted by (`SORTS`)."""
        amount: Decimal = getattr(self, column)
        return amount

    @property
    def words(self) -> dict[str, str]:
        """Each of them in words, made anew at each call."""
        return {name: money(self.cost) if name == "cost" else hours(self.sorted_by(name)) for name in SORTS}

    def __bool__(self) -> bool:
        return bool(self.pods)


class UsageLine(ViewModel, frozen=True, gc=False):
    """A line of a table: a name with its sum, and its share of the whole in percent. `user_id` is 0 but in a table of people; `only` is
    the query of the page of this line alone, if there is one."""

    name: str
    total: UsageTotal
    share: int
    user_id: int = 0
    only: str = ""


class UsageTable(ViewModel, frozen=True, gc=False):
    """Lines, the largest first; `more` sums up those that are left out."""

    title: str
    lines: tuple[UsageLine, ...]
    more: UsageLine | None = None


class DayBar(ViewModel, frozen=True, gc=False):
    """A day of the picture; `top` and `height` are percent of its height, `left` and `width` of its width."""

    day: date
    total: UsageTotal
    title: str
    left: str
    width: str
    top: int
    height: int


class UsageMonth(ViewModel, frozen=True, gc=False):
    """A month, with the sum of it where that is known."""

    first: date
    total: UsageTotal | None = None

    @property
    def value(self) -> str:
        return f"{self.first:%Y-%m}"

    @property
    def words(self) -> str:
        return month_words(self.first)

    @property
    def last(self) -> date:
        return self.first.replace(day=calendar.monthrange(self.first.year, self.first.month)[1])


class UsageView(ViewModel, frozen=True, gc=False):
    """A page's query: its month, the column that its tables are sorted by, and what it is narrowed to, by the names of `NARROWING`."""

    month: UsageMonth
    sort: str = "cost"
    only: Mapping[str, str] = {}

    @classmethod
    def parse(cls, query: Mapping[str, str], now: datetime) -> "UsageView":
        """Return the view; an unknown month is this one, an unknown column the cost."""
        known = {month.value: month for month in last_months(now)}
        this, sort = last_months(now)[0], query.get("sort", "")
        only = {name: query[name][:_LONGEST_VALUE] for name in NARROWING if query.get(name) and "\0" not in query[name]}
        return cls(known.get(query.get("month", ""), this), sort if sort in SORTS else "cost", only)

    def query(self, **changed: str) -> str:
        values = {"month": self.month.value, "sort": self.sort, **self.only, **changed}
        return "?" + urlencode({name: value for name, value in values.items() if value})

    @property
    def cleared(self) -> str:
        return self.query(**dict.fromkeys(self.only, ""))

    @property
    def columns(self) -> dict[str, str]:
        return {NARROWING[name]: value for name, value in self.only.items()}

    def chips(self, rows: Iterable[HeldTime]) -> list[FilterChip]:
        """Return what it is narrowed to in words; the names are those of `rows`, which it shows."""
        row = next(iter(rows), None)
        names = {"project": row.project, "tier": row.tier} if row is not None else {}
        return [
            FilterChip(f"{_NARROWED_WORDS[name]}: {names.get(name, value)}", self.query(**{name: ""}))
            for name, value in self.only.items()
        ]

    def headers(self) -> list[tuple[str, str, bool]]:
        """Return of each column that can be sorted by the title, the link, and whether it is sorted by it."""
        return [(title, self.query(sort=key), key == self.sort) for key, title in SORTS.items()]


def last_months(now: datetime) -> list[UsageMonth]:
    today = now.astimezone(UTC).date()
    count = today.year * 12 + today.month - 1
    return [UsageMonth(date(number // 12, number % 12 + 1, 1)) for number in range(count, count - MONTHS, -1)]


def hours(amount: Decimal) -> str:
    """Return hours with one decimal place, or "less than 0.1" instead of zero."""
    if 0 < amount < _TENTH:
        return _("less than {hours}", hours=_TENTH)
    return f"{amount.quantize(_TENTH):,}" if amount else "0"


def total_of(rows: Iterable[HeldTime]) -> UsageTotal:
    cost = pods = cores = gpus = Decimal(0)
    for row in rows:
        cost, pods = cost + row.price_per_hour * row.pod_seconds, pods + row.pod_seconds
        cores, gpus = cores + row.millicore_seconds, gpus + row.gpu_seconds
    return UsageTotal(cost / _HOUR, pods / _HOUR, cores / _HOUR / _MILLI, gpus / _HOUR)


def in_month(rows: Iterable[HeldTime], month: UsageMonth) -> list[HeldTime]:
    return [row for row in rows if month.first <= row.day <= month.last]


def months_of(rows: Sequence[HeldTime], now: datetime) -> list[UsageMonth]:
    return [UsageMonth(month.first, total_of(in_month(rows, month))) for month in last_months(now)]


def tables(rows: Sequence[HeldTime], view: UsageView, *, is_everybody: bool) -> list[UsageTable]:
    """Return the month's sums by project, tier and node pool, and for everybody by person, for one person by kind."""
    shared = [
        _table(_("By project"), rows, view, lambda row: (row.project, row.project_id), "project"),
        _table(_("By hardware tier"), rows, view, lambda row: (row.tier, row.tier_id), "tier"),
        _table(_("By node pool"), rows, view, lambda row: (row.node_pool, row.node_pool), "pool"),
    ]
    if is_everybody:
        return [_table(_BY_PERSON, rows, view, lambda row: (row.username, "")), *shared]
    return [*shared, _table(_("By kind"), rows, view, lambda row: (KINDS.get(row.kind, _("Deleted executions")), ""))]


def day_bars(rows: Sequence[HeldTime], month: UsageMonth) -> list[DayBar]:
    """Return a bar for each day of the month, of its cost, or of its pod hours when nothing costs anything."""
    by_day = defaultdict(list)
    for row in rows:
        by_day[row.day].append(row)
    days = [month.first.replace(day=number + 1) for number in range(month.last.day)]
    totals = {day: total_of(by_day[day]) for day in days}
    is_free = not any(total.cost for total in totals.values())
    sizes = {day: total.pods if is_free else total.cost for day, total in totals.items()}
    highest = max(sizes.values())
    width = 100 / len(days)
    bars = []
    for number, day in enumerate(days):
        height = round(100 * sizes[day] / highest) if highest else 0
        height = max(height, 2) if sizes[day] else 0  # what is there is seen
        words = totals[day].words
        title = _("{day}: {cost}, {hours} pod hours", day=day_words(day), cost=words["cost"], hours=words["pods"])
        left, wide = f"{number * width + width * 0.1:.2f}%", f"{width * 0.8:.2f}%"
        bars.append(DayBar(day, totals[day], title, left, wide, 100 - height, height))
    return bars


def picture_sentence(bars: Sequence[DayBar], month: UsageMonth) -> str:
    """Return what the picture shows, for those who do not see it."""
    used = [bar for bar in bars if bar.total]
    if not used:
        return _("Nothing was used in {month}.", month=month.words)
    highest = max(used, key=lambda bar: bar.height)
    return ngettext(
        "Used on {count} day of {month}. The most: {day}.",
        "Used on {count} days of {month}. The most: {day}.",
        len(used),
        month=month.words,
        day=highest.title,
    )


def usage_csv(rows: Iterable[HeldTime], *, has_kinds: bool) -> str:
    """Return the rows as a file for spreadsheets. A name that a spreadsheet would compute is quoted with an apostrophe."""
    text = io.StringIO()
    writer = csv.writer(text)
    columns = ["project_id", "project", "tier_id", "tier", "node_pool", *(["kind"] if has_kinds else [])]
    writer.writerow(("day", "user", *columns, "price_per_hour", "pod_hours", "core_hours", "gpu_hours", "cost"))
    for row in sorted(rows):
        total = total_of([row])
        names = (row.username, *(getattr(row, column) for column in columns))
        numbers = (row.price_per_hour, total.pods, total.cores, total.gpus, total.cost)
        writer.writerow((row.day, *map(spreadsheet_text, names), *(f"{round(number, 4):f}" for number in numbers)))
    return text.getvalue()


def _table(
    title: str,
    rows: Sequence[HeldTime],
    view: UsageView,
    key_of: Callable[[HeldTime], tuple[str, str]],
    narrows: str = "",
) -> UsageTable:
    """Return the sums by name and id, which is said only of those that share their name. Each line leads to the page that the parameter
    `narrows` narrows to it, unless the page is that already."""
    groups = defaultdict(list)
    for row in rows:
        groups[key_of(row)].append(row)
    names = Counter(name for name, _ in groups)
    totals = {key: total_of(group) for key, group in groups.items()}
    whole = _micro(sum((total.sorted_by(view.sort) for total in totals.values()), Decimal(0)))

    def line(name: str, total: UsageTotal, user_id: int = 0, id: str = "") -> UsageLine:
        only = view.query(**{narrows: id}) if id and narrows and narrows not in view.only else ""
        return UsageLine(name, total, percent(_micro(total.sorted_by(view.sort)), whole), user_id, only)

    order = sorted(totals, key=lambda key: (-totals[key].sorted_by(view.sort), -totals[key].pods, key))
    is_people = title == _BY_PERSON
    shown, more = [], None
    for name, id in order[:SHOWN]:
        user_id = groups[name, id][0].user_id if is_people else 0
        shown.append(line(f"{name} ({id})" if names[name] > 1 else name, totals[name, id], user_id, id))
    if rest := order[SHOWN:]:
        more = line(_("{count} more", count=len(rest)), total_of(row for key in rest for row in groups[key]))
    return UsageTable(title, tuple(shown), more)


def _micro(amount: Decimal) -> int:
    return int(amount * 1_000_000)


class Spending(ViewModel, frozen=True, gc=False):
    """The cost of pods while they hold a node: the price per hour of each that has `ended` with its seconds, or of each that is `running`
    with the time since which it holds a node."""

    ended: tuple[tuple[Decimal, int], ...] = ()
    running: tuple[tuple[Decimal, datetime], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.ended or self.running)

    def until(self, moment: datetime) -> Decimal:
        """Return the cost until then, by the second."""
        so_far = sum((price * seconds for price, seconds in self.ended), Decimal(0))
        for price, since in self.running:
            so_far += price * max(0, int((moment - since).total_seconds()))
        return so_far / 3600


def price_words(cost_per_hour: Decimal) -> str:
    """Return "$0.40 an hour" for 0.4000, "$0.0125 an hour" where two places are not enough, "free" for 0."""
    if not cost_per_hour:
        return _("free")
    return _("{currency}{price} an hour", currency=CURRENCY, price=price_number(cost_per_hour))
