"""What an Alertmanager posts to a webhook, and keeping it.

https://prometheus.io/docs/alerting/latest/configuration/#webhook_config: version 4. The same post twice changes nothing: each group of
alerts is posted again every few hours. An alert that was taken for over fires again with the beginning that it had.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from grid.core.decoding import prepared
from grid.core.regexes import Expression
from grid.core.translation import gettext as _
from grid.models import Alert

MOST_ALERTS = 500  # in one post
MOST_NAMES = 40  # labels or annotations of one alert
LONGEST = 500  # characters of a value
_FINGERPRINT = Expression(r"[A-Za-z0-9_-]{1,64}")
_NAME, _SEVERITY = 200, 40
_FIRST_YEAR, _LAST_YEAR = 2000, 2200


class HeardAlert(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    status: str
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    starts_at: datetime
    ends_at: datetime | None = None
    fingerprint: str

    @property
    def is_over(self) -> bool:
        return self.status == "resolved"


class _Post(msgspec.Struct, frozen=True):
    version: str
    alerts: list[HeardAlert]


def read_post(body: bytes) -> list[HeardAlert]:
    """Return the alerts of a post. Raise ValueError with a sentence when it is none of version 4."""
    try:
        post = msgspec.json.decode(body, type=prepared(_Post))
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        raise ValueError(_("This is no post of an Alertmanager: {error}.", error=error)) from error
    if post.version != "4":
        other = _("This is version {version} of what an Alertmanager posts, and only 4 is understood.")
        raise ValueError(other.format(version=post.version[:20]))
    if len(post.alerts) > MOST_ALERTS:
        many = _("At most {most} alerts in one post: set max_alerts of the webhook to {most}.", most=MOST_ALERTS)
        raise ValueError(many)
    for alert in post.alerts:
        if not _FINGERPRINT.fullmatch(alert.fingerprint):
            raise ValueError(_("An alert has no fingerprint."))
        times = [alert.starts_at, *([alert.ends_at] if alert.is_over and alert.ends_at is not None else [])]
        if not all(at.tzinfo is not None and _FIRST_YEAR <= at.year <= _LAST_YEAR for at in times):
            raise ValueError(_("An alert has a time without a zone, or one that cannot be."))
    return post.alerts


def keep(alerts: Sequence[HeardAlert], now: datetime) -> None:
    """Store what was heard; what is heard last holds: to believe a late post that something fires does less harm than not to."""
    for heard in alerts:
        columns = {
            "name": _storable(heard.labels.get("alertname", ""))[:_NAME] or "unnamed",
            "severity": _storable(heard.labels.get("severity", ""))[:_SEVERITY],
            "labels": _bounded(heard.labels),
            "annotations": _bounded(heard.annotations),
            "heard_at": now,
            "ended_at": min(heard.ends_at or now, now) if heard.is_over else None,
        }
        # The database keeps microseconds, Alertmanager nanoseconds, which the decoder has cut already.
        key, began = heard.fingerprint, heard.starts_at.astimezone(UTC)
        alert, _unused = Alert.objects.update_or_create(fingerprint=key, started_at=began, defaults=columns)
        if alert.ended_at is None and alert.end_told_at is not None:
            # Operators believe that it is over.
            Alert.objects.filter(pk=alert.pk).update(told_at=None, end_told_at=None)


def _bounded(values: Mapping[str, str]) -> dict[str, str]:
    kept = list(values.items())[:MOST_NAMES]
    return {_storable(name)[:_NAME]: _storable(value)[:LONGEST] for name, value in kept}


def _storable(text: str) -> str:
    """Return the text without NUL, which PostgreSQL cannot store."""
    return text.replace("\0", "")
