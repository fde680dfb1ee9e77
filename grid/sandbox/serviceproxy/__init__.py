"""The embedded cluster's kube-proxy: it forwards connections to a Service's address to one of its pods."""

from grid.sandbox.serviceproxy.proxy import ServiceProxy

__all__ = ["ServiceProxy"]
