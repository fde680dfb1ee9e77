"""Says what archiving something that admins edit means for those who use it; reads the database, synchronously."""

from collections.abc import Iterator

from django.db.models import Q

from grid.core.translation import gettext as _, ngettext
from grid.core.wording import plural
from grid.models import Environment, Execution, HardwareTier, KnowledgeEntry, Membership, Project, Workspace

_FIELDS = {HardwareTier: "tier", Environment: "environment", Project: "project"}


def archiving_means(instance: HardwareTier | Environment | Project | KnowledgeEntry) -> list[str]:
    """Return sentences: what goes on, who has to choose another, what is kept."""
    if isinstance(instance, KnowledgeEntry):
        return [_("Executions that it explained keep the explanation.")]
    return [*_running(instance), *_resumable(instance), *_own(instance)]


def _running(instance: HardwareTier | Environment | Project) -> Iterator[str]:
    uses = Q(tier=instance) | Q(head_tier=instance) if isinstance(instance, HardwareTier) else _refers(instance)
    active = Execution.objects.unsettled().filter(uses, ended_at__isnull=True)
    people = list(active.order_by().values_list("owner", flat=True))
    if not people:
        yield _("No active execution uses it.")
        return
    yield ngettext(
        "{count:,} execution of {users} uses it and continues, also in the queue.",
        "{count:,} executions of {users} use it and continue, also in the queue.",
        len(people),
        users=plural(len(set(people)), "person", "people"),
    )


def _resumable(instance: HardwareTier | Environment | Project) -> Iterator[str]:
    count = Workspace.objects.filter(_refers(instance), deleted_at__isnull=True).count()
    if not count:
        return
    if isinstance(instance, Project):
        yield ngettext(
            "{count:,} workspace of the project cannot be resumed until it is restored.",
            "{count:,} workspaces of the project cannot be resumed until it is restored.",
            count,
        )
    else:
        yield ngettext(
            "{count:,} workspace was launched with it: resuming needs another {noun}.",
            "{count:,} workspaces were launched with it: resuming needs another {noun}.",
            count,
            noun={HardwareTier: _("hardware tier"), Environment: _("environment")}[type(instance)],
        )


def _own(instance: HardwareTier | Environment | Project) -> Iterator[str]:
    if isinstance(instance, HardwareTier) and instance.is_default:
        yield _("It is the default tier: launch forms will preselect the first tier of the list instead.")
    if isinstance(instance, Project):
        members = Membership.objects.filter(project=instance).count()
        yield _(
            "Its {members} can no longer launch in it. Its files and history are kept.",
            members=plural(members, "member", "members"),
        )


def _refers(instance: HardwareTier | Environment | Project) -> Q:
    return Q((_FIELDS[type(instance)], instance))
