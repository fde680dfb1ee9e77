"""How many replicas a workload needs: the HorizontalPodAutoscaler's rules, as pure functions of plain data.

`sync.decide` is one look at one autoscaler; `proposal` turns usage into a number of replicas, `behaviour` slows that number down
and limits it, `reading` makes plain data of Kubernetes' objects. Time comes in as an argument, what must be remembered
from one look to the next is a `Memory` that goes in and comes out. Sentences and reasons are Kubernetes' own, word for word.
"""
