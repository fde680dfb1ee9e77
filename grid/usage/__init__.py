"""Who used how much of the cluster, and what it cost: intervals of held resources, peaks, and the budgets of projects.

It owns recording usage at each reconcile, adding it up by day so that it outlives the executions, and in `budgets` whether a project may
still spend. Others import `usage` and `budgets`; measuring is the business of `grid.metrics`.
"""

PUBLIC = (
    "budgets.closing",
    "budgets.keeper",
    "budgets.rules",
    "contentionnotices",
    "dailyusage",
    "peaks",
    "usage",
    "usagerecorder",
)
