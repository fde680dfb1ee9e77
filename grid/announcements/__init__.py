"""Announcements of operators to everybody, above all maintenance: a time in which nothing new is launched.

It owns when launches are refused and in which words, and telling the owners of running executions once each. Who launches asks
`grid.queue.snapshot`, and the table of announcements is in `grid.models`.
"""

PUBLIC = ("maintenance",)
