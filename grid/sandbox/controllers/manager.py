"""The controllers that share one client and one set of mirrors, as Kubernetes' controller manager does.

The scheduler and the node autoscaler have clients, and identities, of their own.
"""

import asyncio
import random

from grid.sandbox.client import Api, Clock, Mirrors, SystemClock
from grid.sandbox.controllers.claimprotection import ClaimProtection
from grid.sandbox.controllers.controller import EmbeddedController
from grid.sandbox.controllers.deployment import DeploymentController
from grid.sandbox.controllers.disruption import DisruptionController
from grid.sandbox.controllers.endpointslices import EndpointsController
from grid.sandbox.controllers.ephemeral import EphemeralVolumeController
from grid.sandbox.controllers.horizontal import HorizontalController
from grid.sandbox.controllers.nodelifecycle import NodeLifecycleController, NodeTimeouts
from grid.sandbox.controllers.replicaset import ReplicaSetController
from grid.sandbox.controllers.scaling.model import ScalingSettings
from grid.sandbox.controllers.volumeprotection import VolumeProtection
from grid.sandbox.controllers.volumes import VolumeBinder


class ControllerManager:
    """Controllers of workloads and their autoscalers, of endpoints, node lifecycle, disruption budgets, and volumes.

    `bind_volumes` is for the embedded cluster: other clusters bind and protect claims and volumes themselves.
    """

    def __init__(
        self,
        client: Api,
        *,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        patience: NodeTimeouts | None = None,
        scaling: ScalingSettings | None = None,
        bind_volumes: bool = True,
    ) -> None:
        clock = clock or SystemClock()
        mirrors = Mirrors(client, clock=clock, rng=rng)
        self._parts: list[EmbeddedController] = [
            DeploymentController(client, clock=clock, mirrors=mirrors, rng=rng),
            ReplicaSetController(client, clock=clock, mirrors=mirrors, rng=rng),
            EndpointsController(client, clock=clock, mirrors=mirrors, rng=rng),
            HorizontalController(client, clock=clock, mirrors=mirrors, rng=rng, settings=scaling),
            DisruptionController(client, clock=clock, mirrors=mirrors, rng=rng),
            NodeLifecycleController(client, clock=clock, mirrors=mirrors, rng=rng, patience=patience),
            EphemeralVolumeController(client, clock=clock, mirrors=mirrors, rng=rng),
        ]
        if bind_volumes:
            self._parts.append(VolumeBinder(client, clock=clock, mirrors=mirrors, rng=rng))
            self._parts.append(ClaimProtection(client, clock=clock, mirrors=mirrors, rng=rng))
            self._parts.append(VolumeProtection(client, clock=clock, mirrors=mirrors, rng=rng))

    async def run(self) -> None:
        """Run all controllers until cancelled."""
        async with asyncio.TaskGroup() as group:
            for part in self._parts:
                group.create_task(part.run())
