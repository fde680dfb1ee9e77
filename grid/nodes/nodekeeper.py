"""Carries out what operators have asked of nodes; the leading controller does it, and the next one goes on where it stopped.

Each step reads the node as it is and the open tasks as they are stored, so doing one twice changes nothing.
"""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime

import msgspec

from grid.core.decoding import prepared
from grid.core.errors import Conflict, GridError, NotAllowed, NotFound, Rejected
from grid.core.translation import gettext as _
from grid.database.periodic import PeriodicTask
from grid.database.seam import Database
from grid.kube.api import KubeApi
from grid.kube.objects import Node, RawObject
from grid.kube.resources import NODES
from grid.models import NodeTask
from grid.nodes import nodetasks
from grid.nodes.draining import Evictor, Progress, parse_progress
from grid.nodes.nodemarks import Mark, fingerprint, patch_with, with_mark

logger = logging.getLogger(__name__)

LOOK_SECONDS = 2.0
NO_RIGHT = _("The controller has no right to change nodes or to evict pods: apply deploy/access.yaml again.")


class NodeKeeper:
    """Carries out open tasks."""

    def __init__(self, api: KubeApi, database: Database, clock: Callable[[], datetime]) -> None:
        self._api = api
        self._database = database
        self._clock = clock
        self._evictor = Evictor(api, clock)

    def periodic(self) -> PeriodicTask:
        return PeriodicTask(
            "node tasks", LOOK_SECONDS, self.run_once, work=lambda now: NodeTask.objects.filter(ended_at=None)
        )

    async def run_once(self) -> None:
        """Take one step of each open task; what stands in the way of one is told on its node's page."""
        tasks = await self._database(nodetasks.open_tasks)
        taken = await asyncio.gather(*map(self._take, tasks), return_exceptions=True)
        for failure in filter(None, taken):
            raise failure

    async def _take(self, task: NodeTask) -> None:
        try:
            await self._step(task)
        except NotFound:
            await self._end(task, NodeTask.Outcome.GONE)
        except NotAllowed as error:
            logger.warning("node task not allowed node=%s reason=%s", task.node_name, error)
            await self._database(nodetasks.note_trouble, task, NO_RIGHT)
        except GridError as error:
            await self._database(nodetasks.note_trouble, task, _("{error} The controller tries again.", error=error))

    async def _step(self, task: NodeTask) -> None:
        raw = await self._api.get(NODES, task.node_name)
        node = msgspec.convert(raw, prepared(Node), strict=False)
        if node.metadata.uid != task.node_uid:
            await self._end(task, NodeTask.Outcome.GONE)
        elif task.action == NodeTask.Action.DRAIN:
            await self._drain(task, node)
        elif (mark := nodetasks.mark_of(task)) is not None:
            await self._change_mark(task, mark, raw, node)
        else:
            await self._mark(task, node)
            await self._end(task, NodeTask.Outcome.DONE)

    async def _change_mark(self, task: NodeTask, mark: Mark, raw: RawObject, node: Node) -> None:
        """Add or remove the taint or label of the very node that the operator looked at; of one with other labels or taints nothing is
        changed, because the preview was not about it."""
        outcome = NodeTask.Outcome.DONE
        if with_mark(node, mark) != node:
            if fingerprint(node) != task.looked_at:
                outcome = NodeTask.Outcome.CHANGED
            else:
                try:
                    await self._api.patch(NODES, task.node_name, patch_with(raw, mark))
                except Rejected as error:  # by the API server or an admission webhook: it would be again and again
                    await self._database(nodetasks.end, task, NodeTask.Outcome.REFUSED, self._clock(), str(error))
                    return
                except Conflict:
                    return  # somebody wrote it since it was read: the next look tells whether that changes anything here
                logger.info(
                    "node task carried out node=%s action=%s by=%s", task.node_name, task.action, task.actor_name
                )
        await self._end(task, outcome)

    async def _drain(self, task: NodeTask, node: Node) -> None:
        """Cordon the node once and evict its pods. Whoever opens the node again, by whatever means, ends the drain."""
        stored = dict(task.progress or {})
        if not await self._database(nodetasks.note_progress, task, stored):
            return  # cancelled meanwhile
        if not stored.get("cordoned"):
            await self._mark(task, node)
        elif not node.spec.unschedulable:
            await self._end(task, NodeTask.Outcome.CANCELLED)
            return
        progress = await self._evictor.read(task.node_name, parse_progress(stored.get("pods") or {}))
        await self._keep(task, progress)  # before anything is evicted, or what goes quickly would never have been seen
        progress = await self._evictor.evict(progress)
        await self._keep(task, progress)
        if all(pod.state == "gone" for pod in progress.values()):
            await self._end(task, NodeTask.Outcome.DONE)

    async def _keep(self, task: NodeTask, progress: Progress) -> None:
        await self._database(nodetasks.note_progress, task, {"cordoned": True, "pods": msgspec.to_builtins(progress)})

    async def _mark(self, task: NodeTask, node: Node) -> None:
        """Cordon or uncordon the node unless this task has. Somebody's own cordon gets the task's reason."""
        patch = nodetasks.patch_for(task.action, by=task.actor_name, at=task.asked_at, reason=task.reason)
        notes = {key: note for key, note in patch["metadata"]["annotations"].items() if note is not None}
        closes = bool(patch["spec"]["unschedulable"])
        if node.spec.unschedulable != closes or not notes.items() <= node.metadata.annotations.items():
            await self._api.patch(NODES, task.node_name, patch)
            logger.info("node task carried out node=%s action=%s by=%s", task.node_name, task.action, task.actor_name)

    async def _end(self, task: NodeTask, outcome: str) -> None:
        await self._database(nodetasks.end, task, outcome, self._clock())
