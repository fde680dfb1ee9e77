"""The embedded cluster's controllers: each is a client of the API server only, so each runs against any API server."""
