"""The admins' pages of an environment: its form, its revisions, one with the log of its build, a new one, and deprecating one.

It owns the words of revisions and of what a package index knows against them, and `edited`, which is what admins edit. Others may import
`records`; which revision is current is decided in `grid.environments`.
"""

PUBLIC = ("edited", "urls")
