"""How long executions take to start, and when those that wait are expected to, on pages.

It owns the bars of one start, the table and charts by tier, environment, pool or image, and the expected waits, computed once for all
pages of a process. Others import `startup_records`, `expected_waits`, `viewmodels.startup` and `viewmodels.expected_wait`.
"""

PUBLIC = ("expected_waits", "startup_records", "urls", "viewmodels.expected_wait", "viewmodels.startup")
