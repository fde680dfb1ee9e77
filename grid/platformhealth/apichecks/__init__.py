"""Checks on request whether a cluster's API does what Compute Grid needs of it, in a scratch namespace that is removed afterwards."""
