"""The pictures of the guides in `docs/`, taken by `make pictures` from a whole Compute Grid that it starts for itself."""
