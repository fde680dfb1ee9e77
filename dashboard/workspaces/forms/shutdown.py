"""The words of a tier's and a project's own limits of idle time and lifetime."""

from grid.core.translation import gettext as _

LIMIT_LABELS = {"idle_minutes": _("Idle time"), "lifetime_hours": _("Maximum lifetime")}
LIMIT_UNITS = {"idle_minutes": _("minutes"), "lifetime_hours": _("hours")}
_OWN = _(
    "Leave empty for what its tiers say. A shorter time always applies, a longer one up to the bound that the admin has set."
)
PROJECT_LIMIT_HELP = dict.fromkeys(LIMIT_LABELS, _OWN)
