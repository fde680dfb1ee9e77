"""The component page of the demonstration: each part of the visual language in each state, made by the code that makes the real ones.

It composes samples from all rooms, and exists with GRID_DEMO only. No room imports it.
"""

PUBLIC = ("urls",)
