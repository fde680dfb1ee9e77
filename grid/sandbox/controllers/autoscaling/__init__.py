"""When the node autoscaler adds and removes nodes: pure decisions on a snapshot, and the status it publishes."""
