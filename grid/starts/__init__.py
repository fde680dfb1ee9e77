"""How long executions take to start, phase by phase: waiting, a node, pulling the image, the program itself.

It owns the row that is written at the end of a start, by the phases of `grid.diagnosis.startup`, and the sums by day, tier, environment,
pool and image. Others read `startuphistory` and `startdays`; nothing here changes an execution.
"""

PUBLIC = ("startdays", "startuphistory", "startups")
