"""The pages of the queue: who waits, in which order, for what and how long; and what operators decide about it.

What is expected of each that waits comes from `dashboard.starts`.
"""

PUBLIC = ("pages.queue", "urls", "viewmodels.waiting")
