"""A person's notifications on pages: the bell, the list, and the choice of what is told by which channel."""

PUBLIC = ("page", "records", "urls", "viewmodel")
