"""Workspaces: resuming, restarting, renaming and deleting them, and stopping those that are idle or too old.

It owns the settings and files that a workspace keeps from run to run, and the rules of idle time and lifetime in `shutdown`, which hold
for apps too. Others import `workspaces` and what `shutdown` says of an execution; stopping itself is in `grid.executions`.
"""

PUBLIC = ("shutdown.observer", "shutdown.records", "shutdown.rules", "workspaces")
