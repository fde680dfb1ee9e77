"""Who may log in: the authentication backend, sessions, and the throttling of wrong passwords.

It owns sessions in our own table with their limits, and the locks of names and addresses over django-axes. Others may ask `sessions`
and `lockouts`; what a person may do is decided in `dashboard.shell.access` and by a project's roles.
"""

from grid.accounts.backend import AccountBackend

PUBLIC = ("backend", "lockouts", "sessions")

__all__ = ["AccountBackend"]  # people's sessions name it so
