"""The admins' pages of an environment's revisions: the list, one with the log of its build, a new one, and deprecating one.

It owns the words of revisions and of what a package index knows against them. Others may import `records`; which revision is current is
decided in `grid.environments`.
"""
