"""What every program of ours that answers people has in front of it: limits of size, time and number, and one line of log for each refusal.

`server.make_server` makes the HTTP server, whose connections are cut when they are late, too many or say too much; `limits.Limits`
wraps an ASGI application and bounds bodies, requests and websockets; `hosts` lets requests in that name a host and an origin of ours.
Nothing here knows the database.
"""
