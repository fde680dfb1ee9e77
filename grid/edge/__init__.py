"""The front of every program that answers people: limits of size, time and number, and one line of log for each refusal.

`server.make_server` makes the HTTP server, which closes connections that are late, too many or too large; `limits.RequestLimits` wraps an
ASGI application and bounds bodies, requests and websockets; `hosts.OwnHosts` lets in requests that name an allowed host and origin;
`guarded_connector` is the way out, to the addresses that may be called. Nothing here knows the database.
"""

PUBLIC = (
    "addresses",
    "bodies",
    "guarded_connector",
    "hosts",
    "limits",
    "loopback",
    "refusals",
    "requestids",
    "server",
    "slow",
    "textwork",
)
