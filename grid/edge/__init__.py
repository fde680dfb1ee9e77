"""The front of every program that answers people: limits of size, time and number, and one line of log for each refusal.

`server.make_server` makes the HTTP server, which closes connections that are late, too many or too large. `limits.RequestLimits` and the
`wrappers` go around an ASGI application: bodies, requests, websockets, hosts and origins. `guarded_connector` is the way out, to the
addresses that may be called. Nothing here knows the database.
"""

PUBLIC = ("connections", "guarded_connector", "limits", "refusals", "server", "textwork", "wrappers")
