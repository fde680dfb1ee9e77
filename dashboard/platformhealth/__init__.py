"""The page of the platform's health: lights, incidents, workloads, versions, and the checks of the cluster's API.

It owns the words of what the controller has found. Others may import `records` and the view-models, whose summary stands on the
overview.
"""

PUBLIC = ("page", "records", "urls", "viewmodels.platform_health", "viewmodels.platform_page")
