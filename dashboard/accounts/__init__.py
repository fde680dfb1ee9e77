"""Pages of people: logging in and out, one's own account, and the admins' pages of who may log in.

It owns the forms for passwords and invitations, the confirmation of an e-mail address, and the words of locks, roles and sessions.
Others may import `people` and the words of people and memberships; what a person may see is in `dashboard.shell.access`.
"""

PUBLIC = ("people", "urls", "viewmodel", "views.account", "views.people")
