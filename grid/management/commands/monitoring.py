"""Writes the rules for Prometheus and the dashboard for Grafana, from the definitions of the service levels."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from grid import configuration as centralconfig
from grid.servicelevels.files import monitoring_files
from grid.servicelevels.levels import default_targets


class Command(BaseCommand):
    help = "Write the rule file for Prometheus, the dashboard for Grafana and the objects for Prometheus' operator into a folder."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path, help="is created when it does not exist; the files in it are replaced")
        parser.add_argument(
            "--defaults",
            action="store_true",
            help="with the default objectives, thresholds and windows; otherwise with those of the central configuration",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            targets = default_targets() if options["defaults"] else centralconfig.service_level_targets()
        except DatabaseError as error:
            raise CommandError(
                f"The central configuration cannot be read ({error}). Run manage.py migrate first, or use --defaults."
            ) from error
        folder: Path = options["folder"]
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name, text in monitoring_files(targets).items():
                (folder / name).write_text(text, encoding="utf-8")
                self.stdout.write(f"written: {folder / name}")
        except OSError as error:
            raise CommandError(f"The files cannot be written: {error}") from error
