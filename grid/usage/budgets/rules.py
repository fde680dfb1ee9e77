"""What a budget means: its month, its lines, where its course leads, and what people are told; pure.

Months are those of UTC, as everything of usage is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from grid.core.reasons import Reader, Reason, Sentence
from grid.core.translation import gettext as _
from grid.core.wording import day_words, duration, money, month_name

CLOSED = "over_budget"  # the reason of what a used up budget refuses or keeps waiting
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


def reason_of(budget: Budget, spent: Decimal, month: date, *, owner: str) -> Reason:
    """Return the reason why nothing starts in the project of a budget whose stop line is reached; `owner` is the project's, who can act."""
    values = {
        "project": budget.project,
        "amount": str(budget.amount),
        "line": str(budget.stop_line),
        "spent": str(spent),
        "month": month.isoformat(),
        "owner": owner,
    }
    return Reason(CLOSED, values, beginning(next_month(month)))


def refused_sentence(values: Mapping[str, Any]) -> str:
    """Return why a launch is refused: what was spent of what, until when, and who can act."""
    month = date.fromisoformat(values["month"])
    amount, line, spent = (Decimal(values[name]) for name in ("amount", "line", "spent"))
    return f"{_spent_words(values['project'], month, amount, line, spent)}. {_until(month, values['owner'])}"


def waiting_sentence(values: Mapping[str, Any], reader: Reader) -> str:
    """Return why something waits. It names no sum that grows, because all that waits would be written again with each."""
    month = date.fromisoformat(values["month"])
    project, line, until = values["project"], money(Decimal(values["line"])), _until(month, values["owner"])
    sentence = _("The project {project} has reached the stop line of its budget for {month}, {line}. {until}")
    return sentence.format(project=project, month=month_name(month), line=line, until=until)


SENTENCES: dict[str, Sentence] = {CLOSED: waiting_sentence}


def warning_sentence(budget: Budget, spent: Decimal, month: date) -> str:
    words, line = _spent(budget, spent, month), money(budget.stop_line)
    sentence = _("{spent}. At {stop_line} new launches are refused; {running}.")
    return sentence.format(spent=words, stop_line=line, running=_running(budget))


def stop_sentence(budget: Budget, spent: Decimal, month: date) -> str:
    words, day = _spent(budget, spent, month), day_words(next_month(month))
    sentence = _("{spent}. New launches are refused before {day} (UTC), unless an admin raises the budget; {running}.")
    return sentence.format(spent=words, day=day, running=_running(budget))


def coming_stop_sentence(budget: Budget, spent: Decimal, month: date, now: datetime) -> str:
    """Return what the owner of a running execution is told before it is stopped."""
    words, grace, stop = _spent(budget, spent, month), duration(GRACE), (now + GRACE).astimezone(UTC)
    sentence = _("{spent}. It is stopped in {grace}, at {stop:%H:%M} UTC, unless an admin raises the budget before.")
    return sentence.format(spent=words, grace=grace, stop=stop)


def used_up_at(budget: Budget, spent: Decimal, lately: Decimal, now: datetime) -> datetime | None:
    """Return when the stop line is reached if `lately`, spent since `pace_began`, goes on; None after this month, or if it is too early."""
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
    return _spent_words(budget.project, month, budget.amount, budget.stop_line, spent)


def _spent_words(project: str, month: date, amount: Decimal, line: Decimal, spent: Decimal) -> str:
    sentence = _("The project {project} has spent {spent} of its {amount} for {month}")
    if line < amount and spent >= line:
        sentence = _(
            "The project {project} has spent {spent} of its {amount} for {month} and has reached its stop line at {line}"
        )
    return sentence.format(
        project=project, spent=money(spent), amount=money(amount), month=month_name(month), line=money(line)
    )


def _running(budget: Budget) -> str:
    if budget.stops_running:
        return _("running executions are stopped {grace} later", grace=duration(GRACE))
    return _("running executions continue")


def _until(month: date, owner: str) -> str:
    sentence = _("Nothing new starts in it before {day} (UTC), unless an admin raises the budget.")
    if owner:
        sentence = _(
            "Nothing new starts in it before {day} (UTC), unless an admin raises the budget; "
            "its owner, {owner}, can ask for that."
        )
    return sentence.format(day=day_words(next_month(month)), owner=owner)
