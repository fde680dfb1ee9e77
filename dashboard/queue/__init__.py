"""The pages of the queue: who waits, in which order, for what and how long; and what operators decide about it.

It owns the expected waits as pages show them, computed once for all pages of a process. Others import `pages.expected` and
`viewmodels.expected_wait`.
"""
