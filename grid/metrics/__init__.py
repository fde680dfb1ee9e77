"""Measured usage of the cluster, now and in the past: from metrics.k8s.io or Prometheus into memory, and what the autoscaler reads.

What usage costs, and whose it is, is in `grid.usage`.
"""

PUBLIC = ("cpuwindow", "demand", "expressions", "external", "history", "levels", "poller", "sources", "usage")
