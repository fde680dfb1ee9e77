"""How many replicas a workload needs: the HorizontalPodAutoscaler's rules, as pure functions of plain data.

`sync.decide` is one reconciliation of one autoscaler; `proposal` turns usage into a number of replicas, `behaviour` stabilises and
limits that number, `reading` parses Kubernetes' objects. Time is an argument, and the state between two reconciliations is a
`Memory` that is passed in and returned. Messages and reasons are Kubernetes' own, word for word.
"""
