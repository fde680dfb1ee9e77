"""Says how far a page is behind the cluster; every live page carries this fragment."""

from datetime import UTC, datetime, timedelta
from typing import Literal

from dashboard.shell.viewmodels.format import brief_duration, clock_time
from dashboard.shell.viewmodels.live import Fragment, ViewModel
from grid.core.translation import gettext as _
from grid.core.wording import day_words
from grid.kube.store import Freshness
from grid.kube.trouble import ClusterTrouble
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
    if not freshness.synced and freshness.trouble is None:
        detail = freshness.error or _("This page fills as the answer comes.")
        return FreshnessView("starting", _("Reading the cluster"), detail)
    if away is not None and (not freshness.error or freshness.trouble is ClusterTrouble.SLOW):
        headline = _("The controller cannot work") if away.lacks else _("No controller is running")
        return FreshnessView("behind", headline, _idle(away, now))
    if freshness.error or behind >= SMALL_DELAY:
        trouble = freshness.trouble or ClusterTrouble.SILENT
        return FreshnessView("behind", trouble.value, _cluster_trouble(freshness, trouble, now))
    if busy_seconds >= SMALL_DELAY:
        detail = _(
            "The dashboard is busy: what you see is up to {delay} old. It catches up by itself. If "
            "this lasts, tell an operator: more web processes help.",
            delay=_counting(busy_seconds),
        )
        return FreshnessView("behind", _("Behind"), detail)
    return _LIVE if is_followed else FreshnessView("snapshot", _("As of {now} UTC", now=clock_time(now)))


def _cluster_trouble(freshness: Freshness, trouble: ClusterTrouble, now: datetime) -> str:
    """Return for how long the cluster has been silent, of when the page is, and what is wrong."""
    behind, error = freshness.behind_seconds, freshness.error
    shown = clock_time(now - timedelta(seconds=behind))
    if not freshness.synced:
        return _("Not all of the cluster has been read yet. {error}", error=error)
    if trouble is ClusterTrouble.SILENT:
        silent = _counting(freshness.trouble_seconds if freshness.trouble is not None else behind)
        words = _("The cluster has not answered for {behind}; what you see is from {now} UTC. {error}")
        return words.format(behind=silent, now=shown, error=error).rstrip()
    if behind >= SMALL_DELAY:
        return _("{error} What you see is from {now} UTC.", error=error, now=shown)
    if trouble is ClusterTrouble.SLOW:
        return _("{error} Starting and stopping take longer; see its CPU, and that of etcd.", error=error)
    return error


def _idle(away: ControllerAway, now: datetime) -> str:
    since = ""
    if away.since is not None:
        at = away.since.astimezone(UTC)
        since = _(" since {at:%H:%M:%S} UTC", at=at)
        if at.date() != now.date():
            since = _(" since {at:%H:%M:%S} UTC on {day}", at=at, day=day_words(at))
    words = _("Nothing is started, stopped or scaled{since}; running programs continue.", since=since)
    if away.lacks:
        return _("{words} {lacks}", words=words, lacks=away.lacks)
    return _("{words} If this lasts, ask an operator to start the controller.", words=words)


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
