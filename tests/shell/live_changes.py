"""Changes of a runtime's pods, executions and nodes, as reflectors, pollers and the snapshot make them, and a look at a page."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from msgspec import structs

from dashboard.nodes.viewmodels.infrastructure import NodeRow
from dashboard.shell.access import Role, Viewer
from dashboard.shell.pages.page import LivePage
from dashboard.shell.viewmodels.live import Fragment
from grid.core.labels import NODE_POOL
from grid.kube.objects import Event, Node, Pod
from grid.metrics.usage import Measured, Usage
from grid.nodes.scaledown import ScaleDownRules
from grid.runtime import Runtime
from tests.executions.executing import ROW, pod_of
from tests.support.builders import MOMENT, NAMESPACE, container_status, decode, event, node, pod

OPERATOR = Viewer(id=90, username="olga", role=Role.OPERATOR)
ALICE, BOB = (Viewer(id=id, username=name, role=Role.PRACTITIONER) for id, name in ((1, "alice"), (2, "bob")))


def apply(runtime: Runtime, what: str, change: Any, number: int) -> None:
    match what:
        case "pod":
            fields = {
                name: value
                for name, value in change.items()
                if name not in ("restarts", "execution_id", "minute", "waits_for")
            }
            state = {"waiting": {"reason": change["waits_for"]}} if change["waits_for"] else None
            status = container_status(ready=change["ready"], restarts=change["restarts"], state=state)
            selector = {NODE_POOL: "gpu"} if not change["node"] else {}
            made = pod_of(
                change["execution_id"],
                statuses=[status],
                requests={"cpu": "1"},
                created=MOMENT + timedelta(minutes=change["minute"]),
                **fields,
            )
            made["spec"]["nodeSelector"] = selector
            made["metadata"]["resourceVersion"] = str(number)
            runtime.pods.apply(decode(made, Pod))
        case "pod gone":
            runtime.pods.discard(f"{NAMESPACE}/{change}")
        case "row":
            owner, shared = change["owner"], {1: "owner", 2: "contributor"} if change["is_shared"] else {}
            roles = {owner.id: "contributor", **shared}  # in all rows of the project, as they are read
            others = [
                replace(row, project_roles=roles) if row.project_id == change["project_id"] else row
                for row in runtime.executions.values()
                if row.id != change["id"]
            ]
            row = replace(
                ROW,
                id=change["id"],
                kind=change["kind"],
                state=change["state"],
                owner_id=owner.id,
                owner_username=owner.username,
                project_id=change["project_id"],
                project_roles=roles,
                requested_at=MOMENT + timedelta(minutes=change["minute"]),
            )
            runtime.executions.replace([*others, row])
        case "row gone":
            runtime.executions.replace([row for row in runtime.executions.values() if row.id != change])
        case "event":
            about = event(f"event-{number}", about=pod(change), reason="FailedScheduling", message="No node.")
            runtime.events.apply(decode(about, Event))
        case "node":
            name, pool, is_ready = change
            runtime.nodes.apply(decode(node(name, pool=pool, ready=is_ready), Node))
        case "node gone":
            runtime.nodes.discard(change)
        case "usage":
            used = Usage(100 * change, change * 2**20)
            runtime.usage.replace(Measured({"n0": used}, {f"{NAMESPACE}/run-d": used}))
            runtime.hub.publish("usage")


async def read_page(
    page: LivePage[Any, Any], runtime: Runtime, viewer: Viewer, view: Any
) -> tuple[Sequence[Fragment], Any]:
    facts = await page.read(runtime, viewer, view)
    fragments = page.fragments(runtime, viewer, view, facts, runtime.clock())
    return [*map(without_lines, fragments)], page.topics(runtime, viewer, view, facts)


def without_lines(fragment: Fragment) -> Fragment:
    """Return it without what a node used lately: a row is not sent for that alone, so one that is made anew may have more of it."""
    if not isinstance(fragment.context, NodeRow):
        return fragment
    shares = tuple(structs.replace(share, line=None) for share in fragment.context.shares)
    return structs.replace(fragment, context=structs.replace(fragment.context, shares=shares))


async def rules() -> ScaleDownRules:
    return ScaleDownRules(threshold_percent=50, unneeded_seconds=600)
