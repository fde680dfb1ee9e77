"""The hub's topics of what the change feed reports and no cache keeps: pages that show it read it again.

A topic is made of an id; without one it stands for everybody's, as the feed cannot always say whose changed.
"""

from collections.abc import Iterable
from functools import partial

from grid.database.changefeed import EVERYTHING, Change
from grid.kube.hub import Hub, Topic


def _topic(kind: str, owner: str, id: str = "") -> Topic:
    return kind, owner, id


notified = partial(_topic, "notifications", "person")  # a person's notifications
jobs_of = partial(_topic, "jobs", "person")  # a person's jobs: made, renamed, run or deleted
runs_of_job = partial(_topic, "jobs", "job")  # a job's runs and schedules
roles_in = partial(_topic, "roles", "project")  # who is in a project


def publish_written(hub: Hub, changes: Iterable[Change]) -> None:
    for change in changes:
        topics = {notified: change.person, jobs_of: change.jobs_of, runs_of_job: change.job, roles_in: change.project}
        for topic, id in topics.items():
            if id or change == EVERYTHING:
                hub.publish(topic(id))
