"""Tells the owners of executions, once for each, that others on the node take CPU which theirs could use."""

from collections.abc import Mapping
from datetime import datetime

from django.db import transaction

from grid.models import ContentionNotice, Execution, NotificationEvent, State
from grid.notifications import outbox


def tell_owners(sentences: Mapping[str, str], *, now: datetime) -> int:
    """Tell the owner of each running execution its sentence, and return how many were told. Of several processes one tells."""
    return sum(_tell(id, sentence, now) for id, sentence in sentences.items())


@transaction.atomic
def _tell(execution_id: str, sentence: str, now: datetime) -> bool:
    if not Execution.objects.unsettled().filter(pk=execution_id, state=State.RUNNING).exists():
        return False
    _, is_new = ContentionNotice.objects.get_or_create(execution_id=execution_id, defaults={"at": now})
    if is_new:
        outbox.record_once_a_sweep(execution_id, NotificationEvent.CPU_CONTENTION, sentence, now=now)
    return is_new
