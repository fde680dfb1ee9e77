"""What ended the program of a workspace, job or app before it was started again in the same pod, as history entries; pure.

Kubernetes writes no event when a container is killed for memory: its status is all that tells of it, and only until the next end. The
entry's id is made of the pod and the kind, so the history has one of each, with the number of starts.
"""

from collections.abc import Iterator
from datetime import datetime

from grid.core.translation import gettext as _
from grid.core.wording import plural
from grid.diagnosis.beside import programs
from grid.diagnosis.containers import explain_terminated
from grid.executions.ledger import EventRecord
from grid.kube.objects import Pod


def of_pod(pod: Pod, now: datetime) -> Iterator[EventRecord]:
    """Yield an entry for each container that ended badly and was started again, or will be."""
    for status in programs(pod):
        ended = status.last_state.terminated
        if ended is None or not (ended.exit_code or ended.reason == "OOMKilled"):
            continue
        why = explain_terminated(pod, status, ended)
        reason = "out_of_memory" if why.code == "out_of_memory" else "restarted"
        # Kubernetes' restart count includes restarts after ends of every kind.
        count = max(1, status.restart_count)
        again = _("It is started again.")
        if count > 1:
            again = _("It was started again {times} in all.", times=plural(count, "time", "times"))
        yield EventRecord(
            uid=f"{pod.metadata.uid or pod.metadata.name}/{reason}"[-64:],
            at=ended.finished_at or now,
            object=f"Pod/{pod.metadata.name}",
            level="Warning",
            reason=reason,
            message=f"{why.sentence} {again} {why.next_step}".strip(),
            count=count,
        )
