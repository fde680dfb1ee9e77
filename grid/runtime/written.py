"""The hub's topics of what the change feed reports and no cache keeps: pages that show it read it again.

A topic without an id stands for everybody's: the feed cannot say whose changed.
"""

from collections.abc import Iterable

from grid.database.changefeed import EVERYTHING, Change
from grid.kube.hub import Hub, Topic


def notified(person: str = "") -> Topic:
    """Return the topic of a person's notifications, by the id; without one, that of everybody's."""
    return ("notifications", "person", person)


def jobs_of(person: str = "") -> Topic:
    """Return the topic of a person's jobs: made, renamed, run or deleted."""
    return ("jobs", "person", person)


def runs_of_job(job: str = "") -> Topic:
    """Return the topic of a job's runs and schedules."""
    return ("jobs", "job", job)


def roles_in(project: str = "") -> Topic:
    """Return the topic of who is in a project."""
    return ("roles", "project", project)


def publish_written(hub: Hub, changes: Iterable[Change]) -> None:
    for change in changes:
        topics = {
            notified: change.person,
            jobs_of: change.jobs_of,
            runs_of_job: change.job,
            roles_in: change.project,
        }
        for topic, id in topics.items():
            if id or change == EVERYTHING:
                hub.publish(topic(id))
