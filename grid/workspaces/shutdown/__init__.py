"""Stops workspaces and apps by rule: when their maximum lifetime is over, or when they were idle for too long."""
