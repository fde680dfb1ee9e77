"""Says what a person gains and loses with another role, in a project and on the platform; pure."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta

from grid.core.translation import gettext as _
from grid.core.translation import ngettext
from grid.core.wording import duration, listed

OWNER, CONTRIBUTOR, VIEWER = "owner", "contributor", "viewer"
# What each permission of `dashboard.shell.access` lets a person do.
PERMISSION_WORDS = {
    "observe": _("see the infrastructure and everybody's executions, logs and usage"),
    "operate": _("stop and change everybody's executions, and reorder the queue"),
    "read audit": _("read who did what in the audit log"),
    "administer": _("edit tiers, environments, projects, people and settings"),
}


@dataclass(frozen=True, slots=True)
class ProjectWork:
    """What a person has in a project: executions in the queue, other active executions, active schedules, and runs that wait for one."""

    queued: int = 0
    running: int = 0
    schedules: int = 0
    waiting: int = 0

    def __bool__(self) -> bool:
        return self != ProjectWork()


def member_sentences(
    name: str, *, before: str, after: str, work: ProjectWork, grace: timedelta, sees_all: bool
) -> list[str]:
    """Return what the change of a role in a project does; `before` is "" for who is no member, `after` for a removal, and `sees_all` means
    that the role on the platform lets the person see every project."""
    if after == CONTRIBUTOR:
        return [
            _("{name} can launch in the project, open what is shared in it, and read and change its files.", name=name),
            _("What they launch gets the project's secrets, and they can set and delete these."),
        ]
    sentences = []
    if after == VIEWER:
        sentences.append(_("{name} sees the project's executions and logs.", name=name))
    elif not sees_all:
        sentences.append(_("{name} no longer sees the project, its executions or their logs.", name=name))
    if before in (OWNER, CONTRIBUTOR):
        sentences.append(
            _("{name} can no longer launch in the project, open its programs or use its files.", name=name)
        )
        sentences += work_sentences(work, grace)
        sentences.append(_("Their workspaces, jobs and files in the project are kept."))
    return sentences


def work_sentences(work: ProjectWork, grace: timedelta) -> list[str]:
    """Return what ends when a person no longer contributes to a project."""
    running = ngettext(
        "{count:,} active execution of theirs is stopped after {grace}, unless you undo this before then.",
        "{count:,} active executions of theirs are stopped after {grace}, unless you undo this before then.",
        work.running,
        grace=duration(grace),
    )
    queued = ngettext(
        "{count:,} execution in the queue is cancelled now.",
        "{count:,} executions in the queue are cancelled now.",
        work.queued,
    )
    waiting = ngettext(
        "{count:,} waiting run of their jobs is not launched.",
        "{count:,} waiting runs of their jobs are not launched.",
        work.waiting,
    )
    schedules = ngettext(
        "{count:,} schedule of their jobs is paused now.",
        "{count:,} schedules of their jobs are paused now.",
        work.schedules,
    )
    counted = (work.running, running), (work.queued, queued), (work.waiting, waiting), (work.schedules, schedules)
    return [sentence for count, sentence in counted if count] or [
        _("They have no active executions or schedules in the project.")
    ]


def role_sentences(before: Collection[str], after: Collection[str]) -> list[str]:
    """Return what the change of a role on the platform gives and takes, each role as the permissions that it has."""
    gained = [
        words for permission, words in PERMISSION_WORDS.items() if permission in after and permission not in before
    ]
    lost = [words for permission, words in PERMISSION_WORDS.items() if permission in before and permission not in after]
    sentences = []
    if gained:
        sentences.append(_("They can {gained}.", gained=listed(gained)))
    if lost:
        sentences.append(_("They can no longer {lost}. Open pages with any of this close at once.", lost=listed(lost)))
    if not sentences:
        sentences.append(_("They have this role already."))
    sentences.append(_("Their own executions and their roles in projects do not change."))
    return sentences
