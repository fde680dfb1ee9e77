"""Says how far a page is behind the cluster; every live page carries this fragment."""

from datetime import UTC, datetime, timedelta
from typing import Literal

from dashboard.shell.viewmodels.format import brief_duration, clock_time
from dashboard.shell.viewmodels.live import Fragment, ViewModel
from grid.core.translation import gettext as _
from grid.core.wording import day_words
from grid.kube.store import Freshness
from grid.runtime.controllerlease import ControllerAway

FRAGMENT_ID = "freshness"
SMALL_DELAY = 2.0  # seconds; a shorter delay is not worth a message


class FreshnessView(ViewModel, frozen=True, gc=False):
    """A page's freshness. `headline` changes only with the state, so that screen readers announce it once; `detail` may count seconds."""

    state: Literal["live", "snapshot", "starting", "behind", "broken"]
    headline: str
    detail: str = ""


_LIVE = FreshnessView("live", _("Live"))


def freshness_view(
    freshness: Freshness,
    *,
    now: datetime,
    is_followed: bool = True,
    busy_seconds: float = 0.0,
    away: ControllerAway | None = None,
) -> FreshnessView:
    """Return the page's freshness in words. `is_followed` is False for a first paint, which is not live until the websocket is open.
    `busy_seconds` is how much too late the page was updated because this server is overloaded. `away` says that no controller works: then
    the page is right, but what it shows as waiting or stopping goes on doing so."""
    behind = freshness.behind_seconds
    if not freshness.synced:
        detail = freshness.error or _("This page fills as the answer comes.")
        return FreshnessView("starting", _("Reading the cluster"), detail)
    if not freshness.error and away is not None:
        return FreshnessView("behind", _("No controller is running"), _idle(away, now))
    if freshness.error or behind >= SMALL_DELAY:
        detail = _(
            "The cluster has not answered for {behind}; what you see is from {now} UTC. {error}",
            behind=_counting(behind),
            now=clock_time(now - timedelta(seconds=behind)),
            error=freshness.error,
        ).rstrip()
        return FreshnessView("behind", _("The cluster does not answer"), detail)
    if busy_seconds >= SMALL_DELAY:
        detail = _(
            "The dashboard is busy: what you see is up to {delay} old. It catches up by itself. If "
            "this lasts, tell an operator: more web processes help.",
            delay=_counting(busy_seconds),
        )
        return FreshnessView("behind", _("Behind"), detail)
    return _LIVE if is_followed else FreshnessView("snapshot", _("As of {now} UTC", now=clock_time(now)))


def _idle(away: ControllerAway, now: datetime) -> str:
    since = ""
    if away.since is not None:
        at = away.since.astimezone(UTC)
        since = _(" since {at:%H:%M:%S} UTC", at=at)
        if at.date() != now.date():
            since = _(" since {at:%H:%M:%S} UTC on {day}", at=at, day=day_words(at))
    return _(
        "Nothing is started, stopped or scaled{since}; running programs continue. If this lasts, "
        "ask an operator to start the controller.",
        since=since,
    )


def broken_view() -> FreshnessView:
    """Return the view for an error of our own, when the page's fragments could not be made."""
    detail = _(
        "This page could not be updated. It retries every few seconds. If this lasts, ask an operator to look at the server's log."
    )
    return FreshnessView("broken", _("Not up to date"), detail)


def freshness_fragment(view: FreshnessView) -> Fragment:
    return Fragment(FRAGMENT_ID, "shell/fragments/freshness.html", view)


LIVE = freshness_fragment(_LIVE)


def _counting(seconds: float) -> str:
    return f"{int(seconds)} s" if seconds < 120 else brief_duration(seconds)
