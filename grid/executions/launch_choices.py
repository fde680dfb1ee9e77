"""The choices of a person at launch, and why something is not offered: projects, environments, tiers.

A form shows these offers; `grid.executions.request.validate` checks them again, because a form's choices can be old or forged.
"""

from django.db.models import QuerySet

from grid.core.errors import Problem
from grid.core.translation import gettext as _
from grid.models import Environment, HardwareTier, Membership, Project, User
from grid.models.environment import Framework, Kind

LAUNCHABLE_KINDS = frozenset(Kind)


def projects_for(user: User) -> QuerySet[Project]:
    """Return the projects that the user may launch in."""
    if not user.is_active:
        return Project.objects.none()
    return Project.objects.filter(
        is_archived=False, memberships__user=user, memberships__role__in=Membership.CONTRIBUTING
    )


def environments_for(user: User, kind: str) -> QuerySet[Environment]:
    """Return the environments that the user may launch as `kind`."""
    if not user.is_active or kind not in LAUNCHABLE_KINDS:
        return Environment.objects.none()
    return Environment.objects.filter(kind=kind, is_visible=True, is_archived=False)


def kinds_for(user: User) -> set[str]:
    """Return the kinds for which the user has an environment to launch, in one query."""
    if not user.is_active:
        return set()
    offered = Environment.objects.filter(is_visible=True, is_archived=False).order_by()
    return {kind for kind in offered.values_list("kind", flat=True).distinct() if kind in LAUNCHABLE_KINDS}


def tiers_for(user: User, kind: str, framework: str = "") -> QuerySet[HardwareTier]:
    """Return the tiers that the user may choose for `kind`; for clusters of the framework, or of any framework when it is ""."""
    if not user.is_active:
        return HardwareTier.objects.none()
    offered = HardwareTier.objects.filter(is_visible=True, is_archived=False).values_list("pk", "kinds")
    # SQLite cannot search in JSON lists; there are a few dozen tiers at most.
    fitting = {pk for pk, kinds in offered if _is_for(kinds, kind, framework)}
    return HardwareTier.objects.filter(pk__in=fitting - _closed_to(user))


def wrong_tier(
    user: User, stored: HardwareTier | None, kind: str, framework: str = "", *, path: str = "tier"
) -> Problem | None:
    """Why the user may not choose the tier, given as it is stored, or None when it is not there; None when he may."""
    if not user.is_active:
        return None
    if stored is None or stored.is_archived or not stored.is_visible:
        return Problem(path, _("This hardware tier is no longer available; choose another."), "not_offered")
    if not _is_for(stored.kinds, kind, framework):
        sentence = _("{name} is not for this kind of work; choose another tier.", name=stored.name)
        if framework in Framework.values:
            label = Framework(framework).label
            sentence = _(
                "{name} is not for {framework} clusters; choose another tier.", name=stored.name, framework=label
            )
        return Problem(path, sentence, "kind")
    if stored.pk in _closed_to(user):
        sentence = _("{name} is limited to certain groups; choose another, or ask your admin.", name=stored.name)
        return Problem(path, sentence, "group")
    return None


def _closed_to(user: User) -> set[str]:
    """Return the ids of the tiers that are kept for groups of which the user is in none."""
    kept = list(HardwareTier.groups.through.objects.values_list("hardwaretier_id", "group_id"))
    mine = set(user.groups.values_list("pk", flat=True)) if kept else set()
    return {tier for tier, _ in kept} - {tier for tier, group in kept if group in mine}


def _is_for(kinds: list[str], kind: str, framework: str) -> bool:
    """Return True when a tier's `kinds` (kinds of executions, and frameworks for clusters of these only; empty means all) allow it."""
    wanted = {kind}
    if kind == Kind.CLUSTER:
        wanted |= {framework} if framework else set(Framework.values)
    return not kinds or not wanted.isdisjoint(kinds)
