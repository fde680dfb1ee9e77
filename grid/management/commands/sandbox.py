"""`manage.py sandbox`: the embedded single-machine Kubernetes cluster, in the foreground until interrupted."""

import asyncio
import signal
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from grid.sandbox.cluster import CannotStart, ClusterSettings, run_cluster


class Command(BaseCommand):
    help = "Runs the embedded Kubernetes cluster: API server, controllers and this machine's nodes."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--data", type=Path, required=True, help="directory for the cluster's state")
        parser.add_argument("--port", type=int, default=8001, help="port of the API server on 127.0.0.1; 0 for any")
        parser.add_argument(
            "--kubeconfig", type=Path, help="where to write the kubeconfig; DATA/kubeconfig if not given"
        )
        parser.add_argument("--images", type=Path, help="directory for pulled images; DATA/images if not given")

    def handle(self, *args: Any, **options: Any) -> None:
        data: Path = options["data"].absolute()
        settings = ClusterSettings(
            data=data,
            port=options["port"],
            kubeconfig=(options["kubeconfig"] or data / "kubeconfig").absolute(),
            images=(options["images"] or data / "images").absolute(),
        )
        try:
            asyncio.run(self._run(settings))
        except CannotStart as problem:
            raise CommandError(str(problem)) from problem

    async def _run(self, settings: ClusterSettings) -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)

        def ready(url: str) -> None:
            self.stdout.write(f"Sandbox listens on {url}; kubectl --kubeconfig {settings.kubeconfig} get nodes")
            self.stdout.flush()

        await run_cluster(settings, stop, ready)
