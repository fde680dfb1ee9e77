"""On-demand clusters of Dask, Ray and Spark: their objects and states, and the polling of their frameworks.

It owns the two-step manifests of head and workers, growing, shrinking and repairing a running cluster, its samples over time, and what
each of the `frameworks` needs. Others import `request`, `status` and `frameworks.framework`; it runs as one strategy of
`grid.executions.reconcile`.
"""

PUBLIC = (
    "attached", "changes", "framework_poller", "frameworks", "frameworks.base", "frameworkversions", "kind", "reasons",
    "registration", "request",
)  # fmt: skip
