"""Says what archiving something that admins edit means for those who use it; reads the database, synchronously."""

from collections.abc import Iterator

from django.db.models import Q

from grid.models import Environment, Execution, HardwareTier, KnowledgeEntry, Membership, Project, Workspace
from grid.wording import plural

_NOUNS = {HardwareTier: "hardware tier", Environment: "environment"}


def archiving_means(instance: HardwareTier | Environment | Project | KnowledgeEntry) -> list[str]:
    """Return sentences: what goes on, who has to choose another, what is kept."""
    if isinstance(instance, KnowledgeEntry):
        return ["Executions that it explained keep the explanation."]
    return [*_running(instance), *_resumable(instance), *_own(instance)]


def _running(instance: HardwareTier | Environment | Project) -> Iterator[str]:
    uses = Q(tier=instance) | Q(head_tier=instance) if isinstance(instance, HardwareTier) else _refers(instance)
    owners = (
        Execution.objects.unsettled().filter(uses, ended_at__isnull=True).order_by().values_list("owner", flat=True)
    )
    people = list(owners)
    if not people:
        yield "No active execution uses it."
        return
    executions, users = plural(len(people), "execution"), plural(len(set(people)), "person", "people")
    use = "uses it and continues" if len(people) == 1 else "use it and continue"
    yield f"{executions} of {users} {use}, also in the queue."


def _resumable(instance: HardwareTier | Environment | Project) -> Iterator[str]:
    count = Workspace.objects.filter(_refers(instance), deleted_at__isnull=True).count()
    if not count:
        return
    workspaces = f"{plural(count, 'workspace')} {'was' if count == 1 else 'were'} launched with it"
    if isinstance(instance, Project):
        yield f"{plural(count, 'workspace')} of the project cannot be resumed until it is restored."
    else:
        yield f"{workspaces}: resuming needs another {_NOUNS[type(instance)]}."


def _own(instance: HardwareTier | Environment | Project) -> Iterator[str]:
    if isinstance(instance, HardwareTier) and instance.is_default:
        yield "It is the default tier: launch forms will preselect the first tier of the list instead."
    if isinstance(instance, Project):
        members = Membership.objects.filter(project=instance).count()
        yield f"Its {plural(members, 'member')} can no longer launch in it. Its files and history are kept."


def _refers(instance: HardwareTier | Environment | Project) -> Q:
    name = {HardwareTier: "tier", Environment: "environment", Project: "project"}[type(instance)]
    return Q(**{name: instance})
