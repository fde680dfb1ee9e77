"""The reverse proxy from browsers to the web servers of workspaces, apps and clusters: HTTP and websockets, streamed, with access checks.

It runs as a process of its own (`grid.proxy_asgi`). The upstream is user code, so each execution has an origin of its own
(`grid.core.origins`), and every request must carry a grant (`grid.sharing.grants`). Any other request gets the same 403, whether or not the
execution exists.
"""

PUBLIC = ("app", "gate", "headers", "measured", "pods")
