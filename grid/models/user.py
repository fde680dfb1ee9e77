"""Accounts: the people who log in."""

from django.contrib.auth.models import AbstractUser


class User(AbstractUser):
    """A person's account. It is a model of our own because a project can never exchange Django's for one later."""
