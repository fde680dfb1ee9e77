"""The text of `kubectl describe node` and `kubectl describe pod`, made here from raw objects (pure).

Operators know this page by heart, so it is the same to the letter: tests hold it to recordings of the real one.
"""

from grid.diagnosis.describe.node import describe_node
from grid.diagnosis.describe.pod import describe_pod

__all__ = ["describe_node", "describe_pod"]
