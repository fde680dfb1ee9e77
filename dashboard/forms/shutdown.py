"""The words of a tier's and a project's own limits of idle time and lifetime."""

LIMIT_LABELS = {"idle_minutes": "Idle time", "lifetime_hours": "Maximum lifetime"}
LIMIT_UNITS = {"idle_minutes": "minutes", "lifetime_hours": "hours"}
_OWN = "Leave empty for what its tiers say. A shorter time always applies, a longer one up to the bound that the admin has set."
PROJECT_LIMIT_HELP = dict.fromkeys(LIMIT_LABELS, _OWN)
