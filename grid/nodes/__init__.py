"""Nodes and what operators do to them: cordon, drain, taints and labels; and what keeps a node from going.

It owns the pure rules of a drain, of scale-down and of CPU contention, and the keeper that carries out what was asked, step by step and
by the Eviction API alone. Others import the rules; asking for a task goes through `nodetasks`, with its audit entry.
"""

PUBLIC = ("contention", "drain", "draining", "nodekeeper", "nodemarks", "nodetasks", "scaledown")
