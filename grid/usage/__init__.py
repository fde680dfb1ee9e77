"""Who used how much of the cluster, and what it cost: intervals of held resources, peaks, and the budgets of projects.

Measuring is the business of `grid.metrics`.
"""

PUBLIC = ("budgets.closing", "budgets.keeper", "budgets.rules", "dailyusage", "peaks", "usage", "usagerecorder")
