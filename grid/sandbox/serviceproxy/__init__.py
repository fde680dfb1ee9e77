"""The embedded cluster's kube-proxy: what is sent to a Service's address arrives at one of its pods."""

from grid.sandbox.serviceproxy.proxy import ServiceProxy

__all__ = ["ServiceProxy"]
