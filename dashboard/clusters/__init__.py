"""The pages of on-demand clusters: their section of the launch form, workers as cells, autoscaling, samples, and changing the size.

It owns the estimate of a cluster before its launch, and what is lost when its head is restarted. `kind` is the cluster's face on the
pages that all executions have.
"""

PUBLIC = ("kind", "page", "urls")
