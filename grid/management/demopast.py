"""A made-up past for the demo: three weeks of a dozen people's executions, so that the history, usage, costs, start-up times and service
levels show something at once. It says of itself that it is made up: in its projects' names, which stand in each list, and in what its
executions say at their end. Nothing of it runs, and nobody can log in as these people. Its environments are archived, and its nodes are of
a pool of their own, so that no forecast of a start here is drawn from it.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db import transaction

from grid.core.translation import gettext as _
from grid.executions.launchsettings import launch_settings
from grid.executions.spec import serialize_spec
from grid.models import (
    Environment,
    Execution,
    HardwareTier,
    LifecycleEntry,
    Membership,
    Project,
    StartUp,
    State,
    UsageInterval,
    User,
)
from grid.models.environment import Kind
from grid.starts.startups import count_starts
from grid.usage.dailyusage import add_up

DAYS = 21
PEOPLE = ("amara", "bjorn", "chen", "dilek", "elena", "farid", "grace", "hugo", "ines", "jonas", "kemi", "lucia")
_PROJECTS = (
    ("demand", "Demand forecast (made up)", "How much will be sold where."),
    ("fraud", "Card fraud (made up)", "Which payments are not the owner's."),
    ("search", "Search ranking (made up)", "What to show first."),
)
_POOL = "made-up"
_ENVIRONMENTS = (
    ("made-up-notebook", "Notebook (made up)", Kind.WORKSPACE),
    ("made-up-script", "Script (made up)", Kind.JOB),
)
# The tier, the environment, what its program is called, and its hours at least and at most.
_WORK = (
    ("small", "made-up-notebook", "Notebook", (0.5, 6.0)),
    ("medium", "made-up-notebook", "Feature notebook", (1.0, 8.0)),
    ("small", "made-up-script", "Nightly report", (0.05, 0.4)),
    ("medium", "made-up-script", "Training", (0.3, 2.5)),
    ("gpu", "made-up-script", "Fine-tuning", (0.5, 5.0)),
    ("large", "made-up-script", "Backtest", (0.2, 1.5)),
)
_OFTEN = (6, 4, 7, 5, 2, 2)
_BATCH = 500
_SHIFT = (8, 19)  # hours of the day (UTC) at which people launch


@dataclass(frozen=True, slots=True)
class _End:
    state: State
    reason: str
    message: str
    exit_code: int | None = None


_SUCCESS = _End(State.SUCCEEDED, "completed", "Its program ended without an error.", 0)
_STOP = _End(State.STOPPED, "stopped", "Its owner stopped it.")
_FAILURES = (
    _End(State.FAILED, "exit_code", "Its program ended with exit code 1: ModuleNotFoundError: No module named 'xgboost'.", 1),
    _End(State.FAILED, "exit_code", "Its program ended with exit code 1: KeyError: 'customer_id'.", 1),
    _End(State.FAILED, "out_of_memory", "It used more memory than its tier has. Launch it on a larger tier.", 137),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class MadeUp:
    """What is made up of one execution; times are in seconds. `node_wait` is 0 where a node had room."""

    person: int
    work: int
    number: int
    requested_at: datetime
    queued: float
    node_wait: float
    pulling: float
    starting: float
    ran: float
    end: _End

    @property
    def start_seconds(self) -> float:
        return round(self.queued + self.node_wait + self.pulling + self.starting, 1)

    @property
    def started_at(self) -> datetime:
        return self.requested_at + timedelta(seconds=self.start_seconds)

    @property
    def ended_at(self) -> datetime:
        return self.started_at + timedelta(seconds=self.ran)


def make_up(now: datetime, rng: random.Random) -> list[MadeUp]:
    """Return the executions of the last three weeks, each of which has ended; the same for the same seed and moment. Pure."""
    made: list[MadeUp] = []
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    for day in range(DAYS, -1, -1):
        morning = midnight - timedelta(days=day)
        launches = rng.randint(0, 1) if morning.weekday() >= 5 else rng.randint(3, 9)
        for person in range(len(PEOPLE)):
            for _turn in range(max(0, launches + rng.randint(-3, 3))):
                made.append(_one(len(made) + 1, person, morning, rng))
    return [each for each in made if each.ended_at < now]


def _one(number: int, person: int, morning: datetime, rng: random.Random) -> MadeUp:
    work = rng.choices(range(len(_WORK)), _OFTEN)[0]
    tier, *_others, (least, most) = _WORK[work]
    has_no_node = rng.random() < (0.6 if tier == "gpu" else 0.08)
    is_busy = rng.random() < 0.1
    end = rng.choices((_STOP, _SUCCESS), (3, 1) if work < 2 else (1, 12))[0]
    if work >= 2 and rng.random() < 0.12:
        end = rng.choice(_FAILURES)
    return MadeUp(
        person, work, number,
        requested_at=morning + timedelta(hours=rng.uniform(*_SHIFT)),
        queued=round(rng.expovariate(1 / 420), 1) if is_busy else 0.2,
        node_wait=round(rng.uniform(70, 240), 1) if has_no_node else 0.0,
        pulling=round(rng.uniform(8, 45), 1) if has_no_node or rng.random() < 0.15 else 0.0,
        starting=round(rng.uniform(1.5, 6.0), 1),
        ran=round(3600 * rng.uniform(least, most), 1),
        end=end,
    )  # fmt: skip


@transaction.atomic
def create_past(now: datetime, rng: random.Random) -> int:
    """Store what is made up, beside demo data that exist; return the number of executions."""
    users, projects = _people(), _projects()
    for place, user in enumerate(users):
        role = Membership.Role.OWNER if place < len(projects) else Membership.Role.CONTRIBUTOR
        Membership.objects.create(project=projects[place % len(projects)], user=user, role=role)
    Environment.objects.bulk_create(
        Environment(id=id, name=name, kind=kind, image="compute-grid/datascience:1", command=["true"], is_archived=True)
        for id, name, kind in _ENVIRONMENTS
    )
    made = make_up(now, rng)
    rows = list(_executions(made, users, projects))
    Execution.objects.bulk_create(rows, batch_size=_BATCH)
    pairs = list(zip(made, rows, strict=True))
    LifecycleEntry.objects.bulk_create((entry for pair in pairs for entry in _entries(*pair)), batch_size=_BATCH)
    count_starts([_start_up(*pair) for pair in pairs])
    intervals = UsageInterval.objects.bulk_create((_interval(*pair) for pair in pairs), batch_size=_BATCH)
    for first in range(0, len(intervals), _BATCH):
        add_up([interval.pk for interval in intervals[first : first + _BATCH]])
    return len(rows)


def _people() -> Sequence[User]:
    users = [User(username=name, is_active=False) for name in PEOPLE]
    for user in users:
        user.set_unusable_password()
    return User.objects.bulk_create(users)


def _projects() -> Sequence[Project]:
    return Project.objects.bulk_create(
        Project(id=id, name=name, description=description) for id, name, description in _PROJECTS
    )


def _executions(made: Sequence[MadeUp], users: Sequence[User], projects: Sequence[Project]) -> Iterator[Execution]:
    tiers, environments = HardwareTier.objects.in_bulk(), Environment.objects.in_bulk()
    central = launch_settings()
    for each in made:
        tier, environment, name, _hours = _WORK[each.work]
        end, when = each.end, each.ended_at
        row = Execution(
            kind=environments[environment].kind,
            title=f"{name} {each.number}",
            owner=users[each.person],
            project=projects[each.person % len(projects)],
            environment=environments[environment],
            tier=tiers[tier],
            state=end.state, state_since=when, reason=end.reason, message=_("{sentence} (Made up.)", sentence=end.message),
            requested_at=each.requested_at,
            slots_reserved_at=each.requested_at + timedelta(seconds=each.queued),
            started_at=each.started_at,
            ended_at=when, slots_freed_at=when, settled_at=when,
            stop_requested_at=when if end.state == State.STOPPED else None,
            stop_requested_by=users[each.person].username if end.state == State.STOPPED else "",
            exit_code=end.exit_code,
            node_name=f"{_POOL}-{each.number % 7}",
        )  # fmt: skip
        serialize_spec(row, central=central)
        yield row


def _entries(each: MadeUp, row: Execution) -> Iterator[LifecycleEntry]:
    admitted = each.requested_at + timedelta(seconds=each.queued)
    placed = admitted + timedelta(seconds=each.node_wait)
    steps = (
        ("", State.QUEUED, each.requested_at, "requested", "It was launched."),
        (State.QUEUED, State.DEPLOYING, admitted, "admitted", "Its slots were free."),
        (State.DEPLOYING, State.PREPARING, placed, "scheduled", f"It was placed on {row.node_name}."),
        (State.PREPARING, State.RUNNING, each.started_at, "ready", "It runs."),
        (State.RUNNING, row.state, each.ended_at, row.reason, row.message),
    )
    for left, entered, at, reason, message in steps:
        level = "Warning" if entered == State.FAILED else "Normal"
        yield LifecycleEntry(
            execution=row, at=at, from_state=left, to_state=entered, reason=reason, message=message, level=level
        )


def _start_up(each: MadeUp, row: Execution) -> StartUp:
    return StartUp(
        execution_id=row.pk, at=each.started_at, ran=True, kind=row.kind,
        tier_id=row.tier_id, environment_id=row.environment_id, node_pool=_POOL, image=row.environment.image,
        total=each.start_seconds, queued=each.queued, creating=0.0, node_wait=each.node_wait, scheduling=0.0,
        volumes=0.0, pulling=each.pulling, setup=0.0, starting=each.starting, answering=0.0,
        node_started=each.node_wait > 0, image_cached=each.pulling == 0,
    )  # fmt: skip


def _interval(each: MadeUp, row: Execution) -> UsageInterval:
    began, ended = (at.replace(microsecond=0) for at in (each.started_at, each.ended_at))
    return UsageInterval(
        execution=row, pod_uid=f"made-up-{row.pk}", pod_name=row.object_name, node_name=row.node_name,
        owner_id=row.owner_id, project_id=row.project_id, tier_id=row.tier_id, node_pool=row.node_pool,
        millicores=row.millicores, mebibytes=row.memory_bytes // 2**20, gpus=row.gpus, price_per_hour=row.price_per_hour,
        began_at=began, ended_at=ended, seconds=round((ended - began).total_seconds()),
    )  # fmt: skip
