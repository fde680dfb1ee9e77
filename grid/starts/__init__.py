"""How long executions take to start, phase by phase: waiting, a node, pulling the image, the program itself.

It owns the phases of one start (`startup`), the row that is written at its end, and the sums by day, tier, environment, pool and image.
Others read `startuphistory` and `startdays`; nothing here changes an execution.
"""
