"""Measured usage of the cluster, now and in the past: from metrics.k8s.io or Prometheus into memory.

It owns the PromQL expressions, the poller and the usage store, the window of CPU use, and the metric of waiting tasks that the autoscaler
reads. Others read `usage`, `history` and `levels`; what usage costs, and whose it is, is in `grid.usage`.
"""

PUBLIC = ("cpuwindow", "demand", "expressions", "external", "history", "levels", "poller", "sources", "usage")
