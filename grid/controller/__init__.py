"""The controller: one leader among any number of processes, its work loop, and what it does again and again.

It composes the rooms below: it reconciles executions, and runs their periodic tasks (`periodictasks`). Its
command starts it; others may ask `leader` who leads and `retention` what is kept. A room's own periodic work is in that room.
"""

PUBLIC = ("controller", "failures", "leader", "periodictasks", "retention")
