"""Create database rows for the executions of the embedded cluster's population, so that the list of executions shows them too."""

import asyncio
import logging
import time
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError, connection
from django.utils import timezone

from grid.core.errors import GridError
from grid.core.labels import KEYS, SIMULATED
from grid.dataplanes import api_of
from grid.executions.apply import list_all
from grid.kube.objects import Pod
from grid.kube.resources import PODS
from grid.management.simulated import record_simulated
from grid.models.dataplane import LOCAL
from grid.models.environment import Kind

log = logging.getLogger(__name__)


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--clusters", action="store_true", help="those of clusters too; then the controller must not run"
        )
        parser.add_argument("--every", type=float, default=0.0, help="seconds between two looks for new ones")

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.DEMO:
            raise CommandError("It creates people and executions that do not exist: only with GRID_DEMO=1.")
        while True:
            try:
                pods = asyncio.run(_pods(with_clusters=options["clusters"]))
            except GridError as error:
                if not options["every"]:
                    raise CommandError(str(error)) from error
                pods = []
            try:
                count = record_simulated(pods, with_clusters=options["clusters"], now=timezone.now())
            except DatabaseError:
                if not options["every"]:
                    raise
                log.exception("the rows could not be written; trying again in %s s", options["every"])
                connection.close()
                count = 0
            if count or not options["every"]:
                self.stdout.write(f"{count} executions of {len(pods)} pods are in the database now.")
                self.stdout.flush()
            if not options["every"]:
                return
            time.sleep(options["every"])


async def _pods(*, with_clusters: bool) -> list[Pod]:
    selector = SIMULATED if with_clusters else f"{SIMULATED},{KEYS.workload_type}!={Kind.CLUSTER.value}"
    api = api_of(LOCAL)
    try:
        return list(await list_all(api, PODS, Pod, namespace=settings.GRID_NAMESPACE, label_selector=selector))
    finally:
        await api.close()
