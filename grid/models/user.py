"""Accounts: the people who log in."""

from django.contrib.auth.models import AbstractUser


class User(AbstractUser):
    """A person's account; a model of our own because a project cannot replace Django's later."""
