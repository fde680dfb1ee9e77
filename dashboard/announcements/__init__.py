"""Announcements on pages: the banner of every page, and the list in which operators write, edit and end them.

It owns reading them for all open pages of a process together, because they begin and end by the clock. Others import `records`.
"""

PUBLIC = ("forms", "records", "urls")
