"""`manage.py sandbox`: the embedded single-machine Kubernetes cluster, in the foreground until interrupted."""

import asyncio
import signal
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings as django_settings
from django.core.management.base import BaseCommand, CommandError

from grid.sandbox.cluster import CannotStart, EmbeddedClusterSettings, allow_many_files, run_cluster, run_nodes
from grid.sandbox.controllers.autoscaler import AutoscalerSettings
from grid.sandbox.controllers.scaling.model import ScalingSettings
from grid.sandbox.kubelet import FleetSettings
from grid.sandbox.pools import DEFAULT_POOLS, with_maximum
from grid.sandbox.population import Size, wrong_size

_FLAGS = {
    "--kubelet-only": "only join this machine's nodes to the cluster of --kubeconfig",
    "--metrics-server": "with --kubelet-only: register metrics.k8s.io with that cluster, for the nodes of this machine",
    "--simulated": "containers only walk through their states and nothing is executed: for demonstrations with thousands of pods",
    "--without-native-sidecars": "be like Kubernetes before 1.29, which ignores restartPolicy of init containers: "
    "to test what depends on it",
}


class Command(BaseCommand):
    help = "Runs the embedded Kubernetes cluster: API server, controllers and this machine's nodes."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--data", type=Path, required=True, help="directory for the cluster's state")
        parser.add_argument("--port", type=int, default=8002, help="port of the API server on 127.0.0.1; 0 for any")
        parser.add_argument(
            "--kubeconfig",
            type=Path,
            help="where to write the kubeconfig, DATA/kubeconfig if not given; with --kubelet-only the one to use",
        )
        parser.add_argument("--images", type=Path, help="directory for pulled images; DATA/images if not given")
        parser.add_argument("--catalogue", type=Path, help="TOML file with images besides the built-in ones")
        for flag, meaning in _FLAGS.items():
            parser.add_argument(flag, action="store_true", help=meaning)
        parser.add_argument("--nodes", type=int, default=0, help="number of simulated nodes beside the others")
        parser.add_argument("--pods", type=int, default=0, help="number of simulated pods of executions on them")
        parser.add_argument("--churn", type=float, default=0.0, help="how many changes of them there are a second")
        parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same executions (default: 1)")
        _add_speeds(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        data: Path = options["data"].absolute()
        if options["kubelet_only"] and options["kubeconfig"] is None:
            raise CommandError("--kubelet-only needs --kubeconfig: the file that says which cluster the nodes join.")
        if options["metrics_server"] and not options["kubelet_only"]:
            why = "the embedded cluster has metrics of its own."
            raise CommandError(f"--metrics-server goes with --kubelet-only: {why}")
        if options["hpa_sync_seconds"] <= 0 or options["hpa_down_seconds"] < 0:
            raise CommandError("--hpa-sync-seconds must be above 0, and --hpa-down-seconds 0 or more.")
        if options["maximum_nodes"] is not None and options["maximum_nodes"] < 1:
            raise CommandError("--maximum-nodes must be 1 or more.")
        if wrong := wrong_size(nodes=options["nodes"], pods=options["pods"], churn=options["churn"]):
            raise CommandError(wrong)
        if options["pods"] and not options["nodes"]:
            raise CommandError("--pods needs --nodes: they are on these nodes and on no others.")
        settings = EmbeddedClusterSettings(
            data=data,
            port=options["port"],
            kubeconfig=(options["kubeconfig"] or data / "kubeconfig").absolute(),
            images=(options["images"] or data / "images").absolute(),
            catalogue=options["catalogue"],
            pools=with_maximum(DEFAULT_POOLS, options["maximum_nodes"]) if options["maximum_nodes"] else DEFAULT_POOLS,
            autoscaler=AutoscalerSettings(
                scan_seconds=options["scan_seconds"], unneeded_seconds=options["unneeded_seconds"]
            ),
            scaling=ScalingSettings(sync_seconds=options["hpa_sync_seconds"], down_seconds=options["hpa_down_seconds"]),
            fleet=FleetSettings(boot_seconds=options["boot_seconds"], simulated=options["simulated"]),
            metrics_server=options["metrics_server"],
            population=Size(options["nodes"], options["pods"], options["churn"], options["seed"]),
            namespace=django_settings.GRID_NAMESPACE,
            native_sidecars=not options["without_native_sidecars"],
        )
        try:
            asyncio.run(self._run(settings, kubelet_only=options["kubelet_only"]))
        except CannotStart as problem:
            raise CommandError(str(problem)) from problem

    async def _run(self, settings: EmbeddedClusterSettings, *, kubelet_only: bool) -> None:
        allow_many_files()
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        if kubelet_only:
            self._say(f"This machine's nodes join the cluster of {settings.kubeconfig}")
            await run_nodes(settings, stop)
        else:
            get_nodes = f"kubectl --kubeconfig {settings.kubeconfig} get nodes"
            await run_cluster(settings, stop, lambda url: self._say(f"Sandbox listens on {url}; {get_nodes}"))

    def _say(self, sentence: str) -> None:
        self.stdout.write(sentence)
        self.stdout.flush()


def _add_speeds(parser: ArgumentParser) -> None:
    scaling, workloads, fleet = AutoscalerSettings(), ScalingSettings(), FleetSettings()
    parser.add_argument(
        "--maximum-nodes", type=int, help="how many nodes each pool may have that can grow (default: 5, of GPUs 2)"
    )
    for name, default, meaning in (
        ("unneeded", scaling.unneeded_seconds, "how long a node must be unneeded before it is removed"),
        ("scan", scaling.scan_seconds, "how often the node autoscaler looks"),
        ("hpa-sync", workloads.sync_seconds, "how often HorizontalPodAutoscalers are looked at"),
        ("hpa-down", workloads.down_seconds, "how long they keep to the largest recent size before they shrink"),
        ("boot", fleet.boot_seconds, "how long a new node takes until it joins"),
    ):
        parser.add_argument(f"--{name}-seconds", type=float, default=default, help=f"{meaning} (default: %(default)s)")
