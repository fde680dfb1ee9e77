"""The embedded cluster's controllers: each a client of the API server and nothing else, so each runs against any of them."""
