"""Executions' logs leave for a receiver that keeps them: Loki, Elasticsearch or an OpenTelemetry collector, where a setting names one.

`lines` are the lines that wait to be sent, within bounds, `encoding` writes them as each receiver takes them and reads its answer,
`receiver` posts them, `store` remembers how far each log was sent, and `shipper` does all this while this process leads.
"""
