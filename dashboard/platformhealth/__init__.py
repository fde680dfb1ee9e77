"""The page of the platform's health: lights, incidents, workloads, versions, and the checks of the cluster's API.

It owns the words of what the controller has found. Others may import `records` and `viewmodels.platform_health`, whose summary stands
on the overview.
"""

PUBLIC = ("page", "records", "urls", "viewmodels.platform_health")
