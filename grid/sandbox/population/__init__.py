"""The population: thousands of nodes and pods of executions that nobody runs, to look at the dashboard at size.

`plan` says what there is, by a seed; `objects` and `happenings` how it looks in Kubernetes; `stories` what happens to it;
`population` fills the API server's store and keeps it changing. Everything has the label `SIMULATED`, by which the cluster's own
controllers leave it alone, and is in memory only.
"""

from grid.sandbox.population.plan import Size, wrong_size
from grid.sandbox.population.population import Population

__all__ = ["Population", "Size", "wrong_size"]
