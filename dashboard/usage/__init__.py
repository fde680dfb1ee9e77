"""The pages of usage and budgets; prices, right-size hints and CPU contention in words, and what failed when."""

PUBLIC = (
    "forms", "size_records", "urls", "usage_records", "viewmodels.contention", "viewmodels.failure_moments",
    "viewmodels.sizehints", "viewmodels.usage",
)  # fmt: skip
