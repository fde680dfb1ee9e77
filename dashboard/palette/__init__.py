"""The command palette: pages, executions, nodes, tiers and settings that a person may open, found while they type.

It owns the ranking, and searches copies of the caches in a thread. It composes other rooms, and only the component page imports it; the
frame reaches it by its URL.
"""

PUBLIC = ("urls", "viewmodel")
