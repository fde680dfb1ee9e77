"""A project's budget: the meter, the course of the month with where it leads, and what is left for a launch; pure."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from dashboard.shell.viewmodels.live import ViewModel
from grid.core.translation import gettext as _
from grid.core.wording import day_words, money, month_name, month_words, plural
from grid.diagnosis.diagnosis import Severity
from grid.usage.budgets import rules

_FULL = 100


class CourseBar(ViewModel, frozen=True, gc=False):
    """What was spent until the end of one day, or would be (`is_projected`); the numbers are percent of the picture's height and width."""

    title: str
    left: str
    width: str
    top: int
    height: int
    is_projected: bool


class BudgetView(ViewModel, frozen=True, gc=False):
    """The budget of the present month in words and as a picture; `share` is of the amount. The lines are percent of the meter's width
    (`*_at`) and of the picture's height from its top (`*_top`)."""

    severity: Severity
    headline: str
    state: str
    projection: str
    share: int
    warning_at: int
    stop_at: int
    warning_top: int
    stop_top: int
    bars: tuple[CourseBar, ...]
    picture: str
    first: date
    last: date


class PastMonth(ViewModel, frozen=True, gc=False):
    """What was spent in an earlier month, and which lines were reached when, such as "warning line on 20 May, stop line on 28 May"."""

    month: date
    spent: str
    reached: str


def past_month(month: date, spent: Decimal, *, warned_at: datetime | None, stopped_at: datetime | None) -> PastMonth:
    lines = ((_("warning line"), warned_at), (_("stop line"), stopped_at))
    reached = (
        _("{line} on {day}", line=line, day=day_words(at.astimezone(UTC))) for line, at in lines if at is not None
    )
    return PastMonth(month, money(spent), ", ".join(reached))


def budget_view(budget: rules.Budget, costs: Mapping[date, Decimal], now: datetime) -> BudgetView:
    """Return the view; `costs` are what was spent on each day of the month until now."""
    month = rules.month_of(now)
    spent = sum(costs.values(), Decimal(0))
    lately = sum((cost for day, cost in costs.items() if day >= rules.pace_began(now).date()), Decimal(0))
    by_end = rules.spent_by_end(spent, lately, now)
    highest = max(budget.amount, spent, min(by_end or spent, budget.amount * 2))
    severity, state = _state(budget, spent, month)
    amounts = {"spent": money(spent), "amount": money(budget.amount)}
    return BudgetView(
        severity=severity,
        headline=_("{spent} of {amount} spent in {month}", month=month_words(month), **amounts),
        state=state,
        projection=_projection(budget, spent, lately, by_end, now),
        share=min(_FULL, int(spent / budget.amount * _FULL)),
        warning_at=budget.warning_percent,
        stop_at=budget.stop_percent,
        warning_top=_top(budget.warning_line, highest),
        stop_top=_top(budget.stop_line, highest),
        bars=_bars(costs, spent, by_end, highest, now),
        picture=_(
            "What was spent in {month} until each day, beside the warning line at {warning_line} and the stop line "
            "at {stop_line}.",
            month=month_name(month),
            warning_line=money(budget.warning_line),
            stop_line=money(budget.stop_line),
        ),
        first=month,
        last=rules.next_month(month) - timedelta(days=1),
    )


def left_words(budget: rules.Budget, spent: Decimal, price: Decimal, now: datetime) -> str:
    """Return what is left for a launch at a price per hour; "" when nothing is, which its refusal says."""
    left = budget.stop_line - spent
    if left <= 0:
        return ""
    rest = (rules.beginning(rules.next_month(rules.month_of(now))) - now) / timedelta(hours=1)
    named = {"left": money(left), "amount": money(budget.amount), "month": month_name(rules.month_of(now))}
    if price and left / price < rest:
        count = int(left / price)
        hours = plural(count, "hour", "hours") if count else _("less than an hour")
        return _("{left} of {amount} left for {month}: {hours} of this launch", hours=hours, **named)
    return _("{left} of {amount} left for {month}", **named)


def _state(budget: rules.Budget, spent: Decimal, month: date) -> tuple[Severity, str]:
    left = money(max(Decimal(0), budget.stop_line - spent))
    if budget.is_closed(spent):
        running = _("Running executions are stopped.") if budget.stops_running else _("Running executions continue.")
        day = day_words(rules.next_month(month))
        return "problem", _("New launches are refused until {day} (UTC). {running}", day=day, running=running)
    if budget.is_near(spent):
        line = money(budget.warning_line)
        sentence = _("Above the warning line at {line}; {left} left until launches are refused.", line=line, left=left)
        return "wait", sentence
    return "ok", _("{left} left until launches are refused.", left=left)


def _projection(budget: rules.Budget, spent: Decimal, lately: Decimal, by_end: Decimal | None, now: datetime) -> str:
    """Return where the course leads, as a sentence; "" once nothing more can be launched."""
    if budget.is_closed(spent):
        return ""
    if by_end is None:
        return _("The month has just begun: where this leads is not known yet.")
    days = (now.astimezone(UTC).date() - rules.pace_began(now).date()).days + 1
    pace = _("At the pace of the last week")
    if days != rules.PACE_DAYS:
        pace = _("At the pace of the last {days}", days=plural(days, "day", "days"))
    if (used_up := rules.used_up_at(budget, spent, lately, now)) is not None:
        return _("{pace} it is used up on {day}.", pace=pace, day=day_words(used_up))
    return _("{pace} {by_end} are spent by the end of the month.", pace=pace, by_end=money(by_end))


def _bars(
    costs: Mapping[date, Decimal], spent: Decimal, by_end: Decimal | None, highest: Decimal, now: datetime
) -> tuple[CourseBar, ...]:
    month, today = rules.month_of(now), now.astimezone(UTC).date()
    days = (rules.next_month(month) - month).days
    a_day = (by_end - spent) / max(1, days - today.day) if by_end is not None else Decimal(0)
    width, bars, total = 100 / days, [], Decimal(0)
    for number in range(days):
        day = month + timedelta(days=number)
        is_projected = day > today
        total += a_day if is_projected else costs.get(day, Decimal(0))
        title = f"{day_words(day)}: {money(total)}"
        if is_projected:
            title = _("{day}: about {amount}", day=day_words(day), amount=money(total))
        height = min(_FULL, round(total / highest * _FULL)) if by_end is not None or not is_projected else 0
        left, wide = f"{number * width + width * 0.1:.2f}%", f"{width * 0.8:.2f}%"
        bars.append(CourseBar(title, left, wide, _FULL - height, height, is_projected))
    return tuple(bars)


def _top(line: Decimal, highest: Decimal) -> int:
    return _FULL - round(line / highest * _FULL)
