"""What a budget means: its month, its lines, where its course leads, and what people are told; pure.

Months are those of UTC, as everything of usage is.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

from grid.core.translation import gettext as _
from grid.core.wording import day_words, duration, money, month_name

GRACE = timedelta(minutes=10)  # from the warning until what runs is stopped, if that was chosen
PACE_DAYS = 7  # what was spent in these last days, today among them, says how it goes on
SHORTEST_PACE = timedelta(hours=6)  # of a month that has just begun, less than this says nothing


@dataclass(frozen=True, slots=True)
class Budget:
    """A budget that has an amount, of one project."""

    project_id: str
    project: str
    amount: Decimal
    warning_percent: int = 80
    stop_percent: int = 100
    stops_running: bool = False

    @property
    def warning_line(self) -> Decimal:
        return self.amount * self.warning_percent / 100

    @property
    def stop_line(self) -> Decimal:
        return self.amount * self.stop_percent / 100

    def is_closed(self, spent: Decimal) -> bool:
        """Return whether the project takes no new launches."""
        return spent >= self.stop_line

    def is_near(self, spent: Decimal) -> bool:
        return spent >= self.warning_line


def month_of(moment: datetime) -> date:
    """Return the first day of the moment's month."""
    return moment.astimezone(UTC).date().replace(day=1)


def beginning(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def next_month(month: date) -> date:
    return (month + timedelta(days=31)).replace(day=1)


def closed_sentence(budget: Budget, spent: Decimal, month: date, *, owner: str) -> str:
    """Return why a launch is refused: what was spent of what, until when, and who can act."""
    return f"{_spent(budget, spent, month)}. {_until(month, owner)}"


def waiting_sentence(budget: Budget, month: date, *, owner: str) -> str:
    """Return why something waits. It names no sum that grows, because it is stored with all that waits."""
    line = money(budget.stop_line)
    return _(
        "The project {project} has reached the stop line of its budget for {month}, {line}. {until}",
        project=budget.project,
        month=month_name(month),
        line=line,
        until=_until(month, owner),
    )


def warning_sentence(budget: Budget, spent: Decimal, month: date) -> str:
    """Return what is told when the warning line is reached."""
    return _(
        "{spent}. At {stop_line} new launches are refused; {running}.",
        spent=_spent(budget, spent, month),
        stop_line=money(budget.stop_line),
        running=_running(budget),
    )


def stop_sentence(budget: Budget, spent: Decimal, month: date) -> str:
    """Return what is told when the stop line is reached."""
    return _(
        "{spent}. New launches are refused before {day} (UTC), unless an admin raises the budget; {running}.",
        spent=_spent(budget, spent, month),
        day=day_words(next_month(month)),
        running=_running(budget),
    )


def coming_stop_sentence(budget: Budget, spent: Decimal, month: date, now: datetime) -> str:
    """Return what the owner of a running execution is told before it is stopped."""
    return _(
        "{spent}. It is stopped in {grace}, at {stop:%H:%M} UTC, unless an admin raises the budget before.",
        spent=_spent(budget, spent, month),
        grace=duration(GRACE),
        stop=(now + GRACE).astimezone(UTC),
    )


def used_up_at(budget: Budget, spent: Decimal, lately: Decimal, now: datetime) -> datetime | None:
    """Return when the stop line is reached if it goes on as lately; None when not within this month, or when that cannot be said yet.

    `lately` was spent since `pace_began`.
    """
    span, end = now - pace_began(now), beginning(next_month(month_of(now)))
    if span < SHORTEST_PACE or lately <= 0 or budget.is_closed(spent):
        return None
    left = float((budget.stop_line - spent) / lately)
    return now + span * left if left < (end - now) / span else None


def spent_by_end(spent: Decimal, lately: Decimal, now: datetime) -> Decimal | None:
    """Return what the month will have cost if it goes on as lately; None when that cannot be said yet."""
    span, left = now - pace_began(now), beginning(next_month(month_of(now))) - now
    return None if span < SHORTEST_PACE else spent + lately * Decimal(left / span)


def pace_began(now: datetime) -> datetime:
    """Return since when spending says how it goes on: the last days, as far as they are in this month."""
    first = now.astimezone(UTC).date() - timedelta(days=PACE_DAYS - 1)
    return max(beginning(first), beginning(month_of(now)))


def _spent(budget: Budget, spent: Decimal, month: date) -> str:
    sentence = _("The project {project} has spent {spent} of its {amount} for {month}")
    if budget.stop_percent < 100 and budget.is_closed(spent):
        sentence = _(
            "The project {project} has spent {spent} of its {amount} for {month} and has reached its stop line at {line}"
        )
    return sentence.format(
        project=budget.project,
        spent=money(spent),
        amount=money(budget.amount),
        month=month_name(month),
        line=money(budget.stop_line),
    )


def _running(budget: Budget) -> str:
    return (
        _("running executions are stopped {grace} later", grace=duration(GRACE))
        if budget.stops_running
        else _("running executions continue")
    )


def _until(month: date, owner: str) -> str:
    sentence = _("Nothing new starts in it before {day} (UTC), unless an admin raises the budget.")
    if owner:
        sentence = _(
            "Nothing new starts in it before {day} (UTC), unless an admin raises the budget; "
            "its owner, {owner}, can ask for that."
        )
    return sentence.format(day=day_words(next_month(month)), owner=owner)
