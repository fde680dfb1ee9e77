"""Spark: its head and workers, and what they say of themselves."""

from collections.abc import Mapping, Sequence

import aiohttp

from grid.launch.frameworks.base import ClusterReport, FrameworkSilent, Program, WorkerPod
from grid.launch.spec import ExecutionSpec


class Spark:
    """Implements `Framework`."""

    name = "spark"
    ui_port = 8080
    strips_prefix = False

    def head(self, spec: ExecutionSpec) -> Program:
        return Program(("sleep", "infinity"), (), {"exec": {"command": ["true"]}})

    def worker(self, spec: ExecutionSpec, head_address: str) -> Program:
        return Program(("sleep", "infinity"), (), {"exec": {"command": ["true"]}})

    def client_variables(self, spec: ExecutionSpec, head_address: str) -> Mapping[str, str]:
        return {}

    async def ask(
        self, http: aiohttp.ClientSession, head_ip: str, spec: ExecutionSpec, workers: Sequence[WorkerPod]
    ) -> ClusterReport:
        raise FrameworkSilent("Spark is not asked yet.")
