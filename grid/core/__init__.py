"""Values and small tools that every other room may use: quantities, labels, errors, words, regular expressions, back-off, work queues.

Nothing here knows Django, Kubernetes or the database, and nothing here does I/O beyond reading a file of settings or texts. Everybody
may import all of it; it imports no other room.
"""

PUBLIC = ("*",)
