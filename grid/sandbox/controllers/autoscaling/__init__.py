"""The node autoscaler's rules: pure decisions on a snapshot, and the status that it publishes."""
