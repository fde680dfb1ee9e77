"""Executions' logs: how far one was read, sending them to a receiver, and known troubles in their last lines.

It owns the shipping to a receiver (`logshipping`), the knowledge base that admins edit, and the verbose logs of
our own processes. Others import `logplace` and `knowledge`; what a line says in words is `grid.diagnosis`'s.
"""

PUBLIC = ("knowledge", "logplace", "logshipping.receiver", "logshipping.shipper", "verboselogging")
