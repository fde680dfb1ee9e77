"""Measured usage of the cluster, now and in the past: from metrics.k8s.io or Prometheus into memory, and what the autoscaler reads.

What usage costs, and whose it is, is in `grid.usage`.
"""

PUBLIC = ("expressions", "external", "history", "sources", "usage")
