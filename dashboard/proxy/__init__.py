"""The way from a browser to the web server of a workspace, app or cluster: HTTP and websockets, streamed, for those who may open it.

It is served on an origin of its own (`settings.WORKSPACE_ORIGIN`), because what answers there is user code. Addresses start
with `/w/<execution id>/`, and every request must carry a grant (`dashboard.proxy.grants`); everybody else gets one and the
same 403, whether the execution exists or not.
"""
