"""The text of `kubectl describe node` and `kubectl describe pod`, made here from raw objects (pure).

Operators know this page by heart, so the text is the same to the letter: tests compare it with recordings of kubectl.
"""

from grid.diagnosis.describe.node import describe_node
from grid.diagnosis.describe.pod import describe_pod

__all__ = ["describe_node", "describe_pod"]
