"""What a person may choose at launch, and why something is not offered: projects, environments, tiers.

A form asks what to offer; `grid.launch.request.validate` asks again, because a form's choices can be old or forged.
"""

from django.db.models import Q, QuerySet

from grid.errors import Problem
from grid.models import Environment, HardwareTier, Membership, Project, User
from grid.models.environment import Framework, Kind

LAUNCHABLE_KINDS = frozenset(Kind)


def projects_for(user: User) -> QuerySet[Project]:
    """The projects that the user may launch in."""
    if not user.is_active:
        return Project.objects.none()
    mine = Membership.objects.filter(user=user, role__in=Membership.CONTRIBUTING).values("project")
    return Project.objects.filter(pk__in=mine, is_archived=False)


def may_launch_in(user: User, project: Project) -> bool:
    return projects_for(user).filter(pk=project.pk).exists()


def environments_for(user: User, kind: str) -> QuerySet[Environment]:
    """The environments that the user may launch as `kind`."""
    if not user.is_active or kind not in LAUNCHABLE_KINDS:
        return Environment.objects.none()
    return Environment.objects.filter(kind=kind, is_visible=True, is_archived=False)


def cluster_environments_for(user: User, framework: str) -> QuerySet[Environment]:
    """The environments that a cluster of the framework can be made of."""
    if framework not in Framework.values:
        return Environment.objects.none()
    return environments_for(user, Kind.CLUSTER).filter(frameworks__has_key=framework)


def tiers_for(user: User, kind: str, framework: str = "") -> QuerySet[HardwareTier]:
    """The tiers that the user may choose for `kind`; of clusters for the framework, or for any framework without one."""
    if not user.is_active:
        return HardwareTier.objects.none()
    allowed = _allowed(user).values_list("pk", "kinds")
    # SQLite cannot search in JSON lists; there are a few dozen tiers at most.
    return HardwareTier.objects.filter(pk__in={pk for pk, kinds in allowed if _is_for(kinds, kind, framework)})


def wrong_tier(user: User, tier: HardwareTier, kind: str, framework: str = "", *, path: str = "tier") -> Problem | None:
    """Why the user may not choose the tier; None when he may. Told of the stored row, whatever the given one says."""
    if not user.is_active:
        return None
    allowed = _allowed(user).filter(pk=tier.pk).values_list("kinds", flat=True).first()
    if allowed is not None and _is_for(allowed, kind, framework):
        return None
    stored = HardwareTier.objects.filter(pk=tier.pk).first()
    if stored is None or stored.is_archived or not stored.is_visible:
        return Problem(path, "This hardware tier is not offered any more; choose another.", "not_offered")
    if not _is_for(stored.kinds, kind, framework):
        work = f"{Framework(framework).label} clusters" if framework in Framework.values else "this kind of work"
        return Problem(path, f"{stored.name} is not for {work}; choose another tier.", "kind")
    return Problem(path, f"{stored.name} is kept for certain groups; choose another, or ask your admin.", "group")


def _allowed(user: User) -> QuerySet[HardwareTier]:
    """The tiers that are offered to one of the user's groups or to everybody, for whatever kind."""
    offered = HardwareTier.objects.filter(is_visible=True, is_archived=False)
    return offered.filter(Q(groups__isnull=True) | Q(groups__in=user.groups.all()))


def _is_for(kinds: list[str], kind: str, framework: str) -> bool:
    """`kinds` are a tier's: kinds of executions, and frameworks for clusters of these only; empty means everything."""
    wanted = {kind}
    if kind == Kind.CLUSTER:
        wanted |= {framework} if framework else set(Framework.values)
    return not kinds or not wanted.isdisjoint(kinds)
