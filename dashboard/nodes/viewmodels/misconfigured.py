"""What admins are told on the overview: what is misconfigured, with a link to mend it, and the latest changes; pure."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from dashboard.shell.viewmodels.listing import EmptyState
from dashboard.shell.viewmodels.live import Fragment, ViewModel, element_id
from grid.core.translation import gettext as _, ngettext
from grid.core.wording import plural
from grid.diagnosis.nodeshapes import PoolShapes
from grid.diagnosis.shortages import Phantom
from grid.models import AuditEntry
from grid.tiers.tierdoctor import TierRequest, examine

# The URL names of the pages of what is changed; those of the first kind take an id.
_EDITED = {"hardwaretier": "tier", "environment": "environment", "project": "project"}
_KINDS = {
    "hardwaretier": _("tier"),
    "environment": _("environment"),
    "project": _("project"),
    "setting": ngettext("setting", "settings", 1),
    "login": _("login"),
}


class Misconfigured(ViewModel, frozen=True, gc=False):
    """One object that cannot work as it is; `url_name` and `object_id` make the link to where it is mended."""

    url_name: str
    object_id: str
    title: str
    sentence: str
    advice: str


class ChangeLine(ViewModel, frozen=True, gc=False):
    """One entry of the audit log; `url_name` is "" when what was changed has no page."""

    entry_id: str
    at: datetime
    who: str
    what: str
    name: str
    url_name: str
    object_id: str


class AdminFacts(ViewModel, frozen=True, gc=False):
    misconfigured: tuple[Misconfigured, ...] = ()
    changes: tuple[ChangeLine, ...] = ()


def misfits(tiers: Iterable[tuple[str, str, TierRequest]], pools: Mapping[str, PoolShapes]) -> list[Misconfigured]:
    """Return the tiers that no node takes, and those whose pool has no node and gets none. Each tier comes with its id and name."""
    lines = []
    for id, name, request in tiers:
        problem = examine(request, pools.get(request.pool, PoolShapes(request.pool))).problem
        if problem is not None and problem.severity == "problem":
            lines.append(Misconfigured("tier", id, _("Tier {name}", name=name), problem.sentence, problem.next_step))
    return lines


def refused_by_namespace(broken: Iterable[Phantom], names: Mapping[str, str]) -> list[Misconfigured]:
    """Return the promises that a quota or limit range of the namespace breaks; `names` are those of tiers by id."""
    return [
        Misconfigured(
            "tier", phantom.tier, _("Tier {name}", name=names[phantom.tier]), phantom.sentence, phantom.advice
        )
        if phantom.tier
        else Misconfigured("configuration", "", _("Slots per user"), phantom.sentence, phantom.advice)
        for phantom in broken
    ]


def never_started(id: str, name: str, failures: int, message: str) -> Misconfigured:
    """Return an environment of whose launches, as far as they were looked at, none started; `message` is the latest cause."""
    failed, title = plural(failures, "launch", "launches"), _("Environment {name}", name=name)
    sentence = _("It has never started: {launches} failed. The latest: {message}", launches=failed, message=message)
    return Misconfigured("environment", id, title, sentence, _("Check its image and its command."))


def change_line(entry: AuditEntry, object_type: str) -> ChangeLine:
    return ChangeLine(
        entry_id=str(entry.pk),
        at=entry.at,
        who=entry.actor_name,
        what=_("{action} {kind}", action=entry.get_action_display().lower(), kind=_KINDS.get(object_type, object_type)),
        name=entry.object_name or entry.object_id,
        url_name=_EDITED.get(object_type) or {"setting": "configuration", "login": "logins"}.get(object_type, ""),
        object_id=entry.object_id if object_type in _EDITED else "",
    )


def admin_fragments(facts: AdminFacts | None) -> list[Fragment]:
    """Return the regions "misconfigured" and "changes"; None while they are being read."""
    if facts is None:
        reading = EmptyState(_("Still reading."), _("This part fills by itself."))
        return [_none("misconfigured", reading), _none("changes", reading)]
    wrong = [(element_id("mend", line.url_name, line.object_id), line) for line in facts.misconfigured]
    all_well = EmptyState(_("Nothing misconfigured."), _("Every tier fits a node, and environments start."))
    changes = [(element_id("change", change.entry_id), change) for change in facts.changes]
    none_yet = EmptyState(_("No changes yet."), _("What admins change appears here."))
    return [
        *_region("misconfigured", "overview_misconfigured", wrong, all_well),
        *_region("changes", "overview_change", changes, none_yet),
    ]


def _region(region: str, template: str, lines: Iterable[tuple[str, ViewModel]], none: EmptyState) -> list[Fragment]:
    shown = [Fragment(id, f"nodes/fragments/{template}.html", line, region=region) for id, line in lines]
    return shown or [_none(region, none)]


def _none(region: str, empty: EmptyState) -> Fragment:
    return Fragment(f"{region}-none", "shell/fragments/empty_item.html", empty, region=region)
