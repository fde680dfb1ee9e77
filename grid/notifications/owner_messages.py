"""An operator's message to the owners of executions: one notification for each owner, with the names of that owner's executions."""

import hashlib
from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from django.db import transaction

from grid.core.translation import gettext as _
from grid.core.wording import as_sentence, listed_up_to
from grid.models import AuditEntry, Execution, User
from grid.models.execution import object_name_of
from grid.notifications.outbox import tell_of_message

MESSAGE_LONGEST = 300
NAMED = 10  # executions in a notification
# Within which the same message about the same executions is a form that was sent twice.
SENT_TWICE = timedelta(minutes=10)


def message_sentence(text: str, executions: Sequence[str]) -> str:
    """Return what one owner reads, who owns these executions; pure."""
    return _("{text} This is about {executions}.", text=as_sentence(text), executions=listed_up_to(NAMED, executions))


@transaction.atomic
def send_message(execution_ids: Collection[str], text: str, *, by: User, now: datetime) -> int:
    """Notify each owner of these executions, with an audit entry; return how many owners. Sent again, it changes nothing and returns 0."""
    # Of two requests at once the second sees the entry of the first.
    User.objects.select_for_update(no_key=True).get(pk=by.pk)
    rows = Execution.objects.filter(pk__in=execution_ids).select_related("owner").defer("spec")
    by_owner: defaultdict[User, list[Execution]] = defaultdict(list)
    for row in rows.order_by("requested_at", "pk"):
        by_owner[row.owner].append(row)
    key = _key(execution_ids, text)
    sent = AuditEntry.objects.filter(object_type="message", object_id=key, actor=by, at__gt=now - SENT_TWICE)
    if not by_owner or sent.exists():
        return 0
    title = _("Message from {by}", by=by.get_username())
    for owner, own in by_owner.items():
        names = [row.title or object_name_of(row.kind, row.pk) for row in own]
        only = own[0].pk if len(own) == 1 else ""
        tell_of_message(owner, title, message_sentence(text, names), execution_id=only, now=now)
    AuditEntry.objects.create(
        at=now,
        actor=by,
        actor_name=by.get_username(),
        action=AuditEntry.Action.SENT,
        object_type="message",
        object_id=key,
        object_name=text[:200],
        changes={
            "text": ["", text],
            "owners": [[], sorted(owner.get_username() for owner in by_owner)],
            "executions": [[], [row.pk for own in by_owner.values() for row in own]],
        },
    )
    return len(by_owner)


def _key(execution_ids: Collection[str], text: str) -> str:
    return hashlib.sha256("\0".join([text, *sorted(execution_ids)]).encode()).hexdigest()[:32]
