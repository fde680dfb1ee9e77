"""What pages show of on-demand clusters: their part of the launch form, workers as cells, autoscaling, samples, and changing the size.

It owns the estimate of a cluster before its launch, and what is lost when its head is restarted. The execution's page imports its
records, `page` and view-models.
"""
