"""Executions' logs: how far one was read, sending them to a receiver, and known troubles in their last lines.

It owns the shipping to Loki, Elasticsearch or OpenTelemetry (`logshipping`), the knowledge base with its built-in patterns, and the
verbose logs of our own processes. Others import `logfindings`, `logplace` and `knowledge`.
"""
