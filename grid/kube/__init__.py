"""Kubernetes as Compute Grid sees it: the client, and the watch caches that follow a cluster.

It owns the connection and its credentials, the slim typed objects, and the way from a watch (`reflector`) into memory (`store`) to
those who wait (`hub`). It alone imports the official client, and knows no Django. Others ask through `api.KubeApi`, name things by
`resources`, and read `objects` and stores.
"""

PUBLIC = (
    "api", "credentials", "errors", "events", "http", "hub", "limits", "listing", "objects", "pools", "redaction",
    "reflector", "resources", "slim", "store", "trouble",
)  # fmt: skip
