"""The pages of workspaces: the user's own, one with its executions, and resuming, restarting, renaming and deleting it.

It owns the words of a workspace's state with the one button that fits, its card, and the words of stops by rule. `kind` has the faces of
workspaces and apps on the pages that all executions have. Others may import `workspace_records` and the view-models.
"""

PUBLIC = ("kind", "urls", "viewmodels.shutdown", "viewmodels.workspaces", "views.workspaces", "workspace_records")
