"""Whether the platform's parts work: the controller, the watch caches, metrics and the database, in words when one does not; pure."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Literal

from dashboard.shell.viewmodels.freshness import SMALL_DELAY
from dashboard.shell.viewmodels.live import Fragment, ViewModel
from dashboard.shell.viewmodels.states import StatusLine
from grid.core.translation import gettext as _
from grid.core.wording import listed
from grid.kube.store import Freshness
from grid.runtime.controllerlease import ControllerAway


class HealthPart(ViewModel, frozen=True, gc=False):
    """One part of the platform; "wait" is one of which nothing is known, "neutral" one that may be missing. `sentence` says what is wrong,
    "" when all is well; `since` is when that began, if it is known."""

    name: str
    severity: Literal["ok", "wait", "problem", "neutral"]
    sentence: str = ""
    since: datetime | None = None


class Health(ViewModel, frozen=True, gc=False):
    headline: StatusLine
    parts: tuple[HealthPart, ...]


def health(own: Sequence[HealthPart], stored: Sequence[HealthPart]) -> Fragment:
    """Return what the overview shows: *Platform health*’s own headline, the parts `own`, in a word when they are well, and those others
    that are not."""
    known, names = all_parts(own, stored), {part.name for part in own}
    shown = (part for part in known if part.name in names or part.severity in ("problem", "wait"))
    parts = tuple(HealthPart(part.name, "ok") if part.severity == "ok" else part for part in shown)
    return Fragment("health", "platformhealth/fragments/overview_health.html", Health(headline(known), parts))


def all_parts(own: Sequence[HealthPart], stored: Sequence[HealthPart]) -> tuple[HealthPart, ...]:
    """Return one light of each name, with what this process sees itself first. Of two by the same name the worse one is told, of two
    that are well the one that has more to say, and nothing of one that is not known."""
    by_name: dict[str, HealthPart] = {}
    for part in (*own, *stored):
        known = by_name.get(part.name)
        if known is None or (part.severity != "wait" and _badness(part) > _badness(known)):
            by_name[part.name] = part
    return tuple(by_name.values())


def _badness(part: HealthPart) -> tuple[int, bool]:
    return ("ok", "neutral", "wait", "problem").index(part.severity), bool(part.sentence)


def headline(parts: Sequence[HealthPart]) -> StatusLine:
    bad = [part.name for part in parts if part.severity == "problem"]
    unknown = [part.name for part in parts if part.severity == "wait"]
    if bad:
        return StatusLine("problem", _("Trouble with: {parts}", parts=listed(bad)))
    if unknown:
        return StatusLine("wait", _("Not known: {parts}", parts=listed(unknown)))
    return StatusLine("ok", _("Platform healthy"))


def cluster_part(freshness: Freshness, now: datetime) -> HealthPart:
    """Return what this process meets when it asks the API server."""
    name, trouble = _("API server"), freshness.trouble
    if trouble is None:
        return HealthPart(name, "ok")
    since = now - timedelta(seconds=freshness.trouble_seconds) if freshness.trouble_seconds else None
    return HealthPart(name, "problem", _("{headline}. {error}", headline=trouble.value, error=freshness.error), since)


def controller_part(away: ControllerAway | None, is_known: bool = True, unreadable: str = "") -> HealthPart:
    """Return what is known of the controller; `unreadable` says why its Lease cannot be read."""
    name = _("Controller")
    if away is not None and away.lacks:
        sentence = _("It runs and cannot work. {lacks} Running programs continue.", lacks=away.lacks)
        return HealthPart(name, "problem", sentence, away.since)
    if not is_known:
        sentence = _("Its state is unknown: its Lease cannot be read. {why}", why=unreadable).rstrip()
        return HealthPart(name, "wait", sentence)
    if away is None:
        return HealthPart(name, "ok")
    if away.since is None:
        return HealthPart(name, "problem", _("No controller has ever run: nothing is admitted. Start one."))
    sentence = _("It has stopped: nothing is admitted, recorded or cleaned up. Running programs continue. See its log.")
    return HealthPart(name, "problem", sentence, away.since)


def caches_part(caches: Mapping[str, Freshness]) -> HealthPart:
    name = _("Watch caches")
    behind = {
        cache: freshness
        for cache, freshness in caches.items()
        if not freshness.synced or freshness.error or freshness.behind_seconds >= SMALL_DELAY
    }
    if not behind:
        return HealthPart(name, "ok")
    names = listed(cache.replace("_", " ") for cache in behind)
    error = next((freshness.error for freshness in behind.values() if freshness.error), "")
    if not any(freshness.synced for freshness in behind.values()):
        return HealthPart(name, "wait", _("Not read yet: {caches}. {error}", caches=names, error=error).strip())
    return HealthPart(name, "problem", _("Behind the cluster: {caches}. {error}", caches=names, error=error).strip())


def metrics_part(unavailable: str) -> HealthPart:
    return HealthPart(_("Metrics"), "neutral" if unavailable else "ok", unavailable)


def database_part(problems: Sequence[str], silent_since: datetime | None) -> HealthPart:
    if silent_since is not None:
        return HealthPart(_("Database"), "problem", _("It does not answer."), silent_since)
    return HealthPart(_("Database"), "problem" if problems else "ok", " ".join(problems))
