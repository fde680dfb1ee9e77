"""Says what a person gains and loses with another role, in a project and on the platform; pure."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta

from grid.wording import duration, listed, plural

OWNER, CONTRIBUTOR, VIEWER = "owner", "contributor", "viewer"
# What each permission of `dashboard.access` lets a person do.
PERMISSION_WORDS = {
    "observe": "see the infrastructure and everybody's executions, logs and usage",
    "operate": "stop and change everybody's executions, and reorder the queue",
    "read audit": "read who did what in the audit log",
    "administer": "edit tiers, environments, projects, people and settings",
}


@dataclass(frozen=True, slots=True)
class ProjectWork:
    """What a person has in a project: executions in the queue, other active executions, active schedules, and runs that wait for one."""

    queued: int = 0
    running: int = 0
    schedules: int = 0
    waiting: int = 0

    def __bool__(self) -> bool:
        return bool(self.queued or self.running or self.schedules or self.waiting)


def member_sentences(
    name: str, *, before: str, after: str, work: ProjectWork, grace: timedelta, sees_all: bool
) -> list[str]:
    """Return what the change of a role in a project does; `before` is "" for who is no member, `after` for a removal, and `sees_all` means
    that the role on the platform lets the person see every project."""
    if after == CONTRIBUTOR:
        return [
            f"{name} can launch in the project, open what is shared in it, and read and change its files.",
            "What they launch gets the project's secrets, and they can set and delete these.",
        ]
    sentences = []
    if after == VIEWER:
        sentences.append(f"{name} sees the project's executions and logs.")
    elif not sees_all:
        sentences.append(f"{name} no longer sees the project, its executions or their logs.")
    if before in (OWNER, CONTRIBUTOR):
        sentences.append(f"{name} can no longer launch in the project, open its programs or use its files.")
        sentences += work_sentences(work, grace)
        sentences.append("Their workspaces, jobs and files in the project are kept.")
    return sentences


def work_sentences(work: ProjectWork, grace: timedelta) -> list[str]:
    """Return what ends when a person no longer contributes to a project."""
    sentences = []
    if work.running:
        verb = "is" if work.running == 1 else "are"
        sentences.append(
            f"{plural(work.running, 'active execution')} of theirs {verb} stopped after {duration(grace)}, "
            "unless you undo this before then."
        )
    if work.queued:
        verb = "is" if work.queued == 1 else "are"
        sentences.append(f"{plural(work.queued, 'execution')} in the queue {verb} cancelled now.")
    if work.waiting:
        verb = "is" if work.waiting == 1 else "are"
        sentences.append(f"{plural(work.waiting, 'waiting run')} of their jobs {verb} not launched.")
    if work.schedules:
        verb = "is" if work.schedules == 1 else "are"
        sentences.append(f"{plural(work.schedules, 'schedule')} of their jobs {verb} paused now.")
    return sentences or ["They have no active executions or schedules in the project."]


def role_sentences(before: Collection[str], after: Collection[str]) -> list[str]:
    """Return what the change of a role on the platform gives and takes, each role as the permissions that it has."""
    gained = [
        words for permission, words in PERMISSION_WORDS.items() if permission in after and permission not in before
    ]
    lost = [words for permission, words in PERMISSION_WORDS.items() if permission in before and permission not in after]
    sentences = []
    if gained:
        sentences.append(f"They can {listed(gained)}.")
    if lost:
        sentences.append(f"They can no longer {listed(lost)}. Open pages with any of this close at once.")
    if not sentences:
        sentences.append("They have this role already.")
    sentences.append("Their own executions and their roles in projects do not change.")
    return sentences
