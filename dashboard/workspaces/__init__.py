"""The pages of workspaces: the user's own, one with its executions, and resuming, restarting, renaming and deleting it.

It owns the words of a workspace's state with the one button that fits, and of stops by rule. Others may import `workspace_records`,
`shutdown_records` and their view-models.
"""
