"""The way from a browser to the web server of a workspace, app or cluster: HTTP and websockets, streamed, for those who may open it.

It runs as a process of its own (`grid.proxy_asgi`). What answers is user code, so each execution has an origin of its own
(`grid.origins`), and every request must carry a grant (`grid.launch.grants`); everybody else gets one and the same 403, whether
the execution exists or not.
"""
