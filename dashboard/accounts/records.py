"""Reads what a person has in a project, before somebody takes it away; synchronously."""

from collections.abc import Collection
from datetime import timedelta

from dashboard.accounts.viewmodel import ProjectWork, work_sentences
from grid.configuration import ACCESS_LOST_TIMEOUT, value_of
from grid.jobs.jobrows import waiting_runs
from grid.models import Execution, Membership, Project, Schedule, State, User
from grid.projects.departures import LIVES


def work_in(project: Project, user: User) -> ProjectWork:
    """Return what ends when the person no longer contributes to the project, as `grid.projects.departures` and `scheduler` end it."""
    active = Execution.objects.unsettled().filter(LIVES, owner=user, project=project)
    states = list(active.order_by().values_list("state", flat=True))
    queued = states.count(State.QUEUED)
    schedules = Schedule.objects.filter(next_at__isnull=False, job__owner=user, job__project=project)
    waiting = waiting_runs().filter(job__owner=user, job__project=project)
    return ProjectWork(queued, len(states) - queued, schedules.count(), waiting.count())


def losses(project: Project, contributing: Collection[User]) -> list[str]:
    """Return sentences for each present contributor who is not among the given ones and has something in the project that ends."""
    leaving = User.objects.filter(memberships__project=project, memberships__role__in=Membership.CONTRIBUTING).exclude(
        pk__in=[user.pk for user in contributing]
    )
    return [
        f"{user.get_username()}: {sentence}"
        for user in leaving.order_by("username")
        if (work := work_in(project, user))
        for sentence in work_sentences(work, grace())
    ]


def grace() -> timedelta:
    """Return for how long executions of a person without access continue."""
    return timedelta(seconds=value_of(ACCESS_LOST_TIMEOUT))
