"""The population: thousands of simulated nodes and pods, to see the dashboard at scale.

`plan` draws its content from a seed; `objects` and `happenings` build its Kubernetes objects; `stories` change them; `population`
fills the API server's store and keeps it changing. Everything has the label `SIMULATED`, so that the cluster's own controllers ignore
it, and is in memory only.
"""

from grid.sandbox.population.plan import Size, wrong_size
from grid.sandbox.population.population import Population

__all__ = ["Population", "Size", "wrong_size"]
