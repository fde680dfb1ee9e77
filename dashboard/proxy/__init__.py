"""The way from a browser to the web server inside a workspace or app: HTTP and websockets, streamed, for the owner only.

It is served on an origin of its own (`settings.WORKSPACE_ORIGIN`), because what answers there is user code. Addresses start
with `/w/<execution id>/`, and every request must carry a grant (`dashboard.proxy.grants`); everybody else gets one and the
same 403, whether the execution exists or not.
"""
