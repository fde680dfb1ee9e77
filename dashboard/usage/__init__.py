"""The pages of usage and budgets; prices, right-size hints and CPU contention in words, and what failed when."""

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
