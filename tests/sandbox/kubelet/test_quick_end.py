"""A program that ends before its start is noticed, as happens on a busy machine: it was started all the same."""

from pathlib import Path

from grid.sandbox.kubelet.process_runtime import ProcessRuntime
from grid.sandbox.kubelet.runtime import Attempt, ResolvedContainer
from tests.sandbox.kubelet.support import World, pod


class LateRuntime(ProcessRuntime):
    """Tells of a start when everything is over."""

    async def start(self, spec: ResolvedContainer) -> Attempt:
        return await self.ended(await super().start(spec))


async def test_quickly_ended_program_was_started_with_termination_message(tmp_path: Path) -> None:
    world = World(tmp_path, runtime_class=LateRuntime)
    try:
        extra = {"terminationMessagePolicy": "FallbackToLogsOnError"}
        await world.run(pod("job", "echo why; exit 1", container=extra))
        status = await world.phase("job", "Failed")
        ended = status["containerStatuses"][0]["state"]["terminated"]
        assert (ended["exitCode"], ended["reason"], ended["message"].strip()) == (1, "Error", "why")
        await world.event("job", "Started")
        assert world.api.messages("job", "Failed") == []
    finally:
        await world.close()
