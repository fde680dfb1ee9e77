"""Executions: from a person's request to objects in the cluster, and from what becomes of them back to a state with a reason.

It owns the spec that is frozen at launch, the manifests made of it, with what JupyterLab and Python are told there, applying and deleting
them, and every change of state (`lifecycle`). Others import `spec`, `request`, `stopping` and `context`; the kinds of execution
(workspaces, jobs, clusters) have rooms of their own above.
"""

PUBLIC = (
    "apply", "caches", "context", "dryrun", "front", "ingress", "kinds", "launchrequest", "launchsettings",
    "ledger", "lifecycle", "listening", "manifests", "names", "podkind", "policykeeper", "preview",
    "prices", "progress", "reasons", "reconcile", "request", "runpod", "spec", "stopping", "storage", "variables",
)  # fmt: skip
