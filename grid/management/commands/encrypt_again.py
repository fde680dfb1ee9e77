"""Encrypts all stored secrets with the first key of the settings, after which the older keys can be removed."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from grid.core.wording import plural
from grid.models import RemoteRepository, StoredSecret, WebhookTarget
from grid.secrets.storedsecrets import encrypt_all_again


class Command(BaseCommand):
    help = "Encrypt all stored secrets with the first of GRID_ENCRYPTION_KEYS."

    def handle(self, *args: Any, **options: Any) -> None:
        counted = (
            encrypt_all_again(StoredSecret),
            encrypt_all_again(WebhookTarget, "secret"),
            encrypt_all_again(RemoteRepository),
        )
        done, unreadable = (sum(counts) for counts in zip(*counted, strict=True))
        self.stdout.write(f"{plural(done, 'secret', 'secrets')} encrypted with the first key.")
        if unreadable:
            raise CommandError(
                f"{plural(unreadable, 'secret', 'secrets')} cannot be read with any key of the settings. "
                "Add the key that encrypted them, and try again."
            )
