"""The pages of usage and budgets: what was held and what it cost, by month, day, project, tier and person.

It owns prices and costs in words, the meter of a budget, right-size hints and CPU contention in words. Others import
`viewmodels.prices`, `viewmodels.sizehints` and `budget_records`.
"""

PUBLIC = (
    "budget_records",
    "forms",
    "size_records",
    "urls",
    "usage_records",
    "viewmodels.contention",
    "viewmodels.failure_moments",
    "viewmodels.prices",
    "viewmodels.sizehints",
    "viewmodels.usage",
)
