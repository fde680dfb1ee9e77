"""Who may open an execution in a browser: its owner, and those with whom an app or a port is shared.

It owns the one-time tickets and the grants that they are exchanged for, and the decision in `opening`, which the proxy asks again every
second. Others import `opening`, `grants` and `sharing`; what a person may do on pages is not decided here.
"""

PUBLIC = ("grants", "opening", "sharing")
