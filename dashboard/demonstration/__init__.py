"""The demonstration page: the size of the embedded cluster's population, and failures that can be caused to see what is said of them.

It owns nothing that is stored, and exists with GRID_DEMO only. No room imports it.
"""

PUBLIC = ("urls",)
