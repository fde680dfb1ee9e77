"""The admins' pages of an environment: its form, its revisions, one with the log of its build, a new one, and deprecating one.

It owns the words of revisions and of what a package index knows against them, and what admins edit. Which revision is current is
decided in `grid.environments`.
"""

PUBLIC = ("urls", "views")
