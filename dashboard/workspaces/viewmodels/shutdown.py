"""The notice of a stop by rule on an execution's page: idleness with its evidence, a maximum lifetime, the button that keeps it; pure."""

from dataclasses import dataclass
from datetime import datetime

from dashboard.shell.viewmodels.live import Fragment
from grid.core.translation import gettext as _

LIMIT_LABELS = {"idle_minutes": _("Idle time"), "lifetime_hours": _("Maximum lifetime")}
LIMIT_UNITS = {"idle_minutes": _("minutes"), "lifetime_hours": _("hours")}
_OWN = _(
    "Leave empty for what its tiers say. A shorter time always applies, a longer one up to the bound that the admin has set."
)
PROJECT_LIMIT_HELP = dict.fromkeys(LIMIT_LABELS, _OWN)


@dataclass(frozen=True, slots=True)
class StopOutlook:
    """What is known of stops by rule, limits in words. `stops_at` is the announced stop; `keep` says how much longer one press keeps it."""

    idle_limit: str = ""
    lifetime_limit: str = ""
    lifetime_ends_at: datetime | None = None
    idle_since: datetime | None = None
    evidence: str = ""
    is_unknown: bool = False
    is_in_use: bool = False
    stops_at: datetime | None = None
    is_idle: bool = False
    keep: str = ""
    why_not_keep: str = ""


@dataclass(frozen=True, slots=True)
class ShownOutlook:
    """The notice as one person sees it; `token` names the announcement that the button is about, "" without a button."""

    outlook: StopOutlook | None
    token: str = ""


def stop_notice(outlook: StopOutlook | None, *, may_keep: bool) -> Fragment:
    token = outlook.stops_at.isoformat() if outlook and outlook.stops_at and outlook.keep and may_keep else ""
    return Fragment("stop-notice", "workspaces/fragments/execution_stop_notice.html", ShownOutlook(outlook, token))
