"""Logs on pages: an execution's lines with what is known about them, the knowledge base, and verbose logs of our own processes.

It owns escaping and colouring lines (`viewmodels.ansi`), paging through a log, and the form of a knowledge entry. Others import the
log's view-models and `views.logs`.
"""

PUBLIC = (
    "urls", "viewmodels.ansi", "viewmodels.knowledge", "viewmodels.log", "viewmodels.log_lines", "views.knowledge", "views.logs",
)  # fmt: skip
