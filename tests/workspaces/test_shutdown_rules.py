"""When a stop is announced and made, in virtual time: never unannounced, never in use, never before what was promised."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given, strategies as st

from grid.configuration import SHUTDOWN_SETTINGS, WORKSPACE_IDLE, WORKSPACE_LIFETIME
from grid.executions.stopping import IDLE, LIFETIME
from grid.workspaces.shutdown.rules import (
    GAP,
    SETTLED,
    Announce,
    Life,
    Look,
    OwnLimits,
    PlannedStop,
    Stop,
    StopLimits,
    Withdraw,
    decide,
    effective,
    keepable_until,
    last_active,
    limits_of,
    warning_before,
)
from tests.support.shop import NOW

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
LIMITS = StopLimits(idle=HOUR, lifetime=24 * HOUR, warning=30 * MINUTE, keep=2 * HOUR, extension=3 * HOUR)
LIFE = Life(started_at=NOW, active_at=NOW, is_idle_known=True)
VALUES = {setting.key: setting.default for setting in SHUTDOWN_SETTINGS}
AT_NINE = Look(is_known=True)


def test_unknown_idleness_withdraws_and_prevents_idle_stops() -> None:
    unknown = replace(LIFE, is_idle_known=False)
    assert decide(unknown, LIMITS, NOW + 31 * MINUTE) is None
    assert decide(LIFE, LIMITS, NOW + 31 * MINUTE) == Announce(PlannedStop(IDLE, NOW + HOUR))
    announced = replace(unknown, announced=PlannedStop(IDLE, NOW + HOUR))
    assert decide(announced, LIMITS, NOW + HOUR + GAP) is None, "it may become known again"
    assert decide(announced, LIMITS, NOW + HOUR + GAP + MINUTE) == Withdraw()
    ending = replace(LIMITS, lifetime=95 * MINUTE)
    by_lifetime = Announce(PlannedStop(LIFETIME, NOW + 95 * MINUTE))
    assert decide(announced, ending, NOW + HOUR + GAP + MINUTE) == by_lifetime


def test_lifetime_ends_even_busy_or_unreachable_workspaces() -> None:
    busy = Life(started_at=NOW, active_at=NOW + 24 * HOUR, is_idle_known=False)
    stop = PlannedStop(LIFETIME, NOW + 24 * HOUR)
    assert decide(busy, LIMITS, NOW + 23.5 * HOUR) == Announce(stop)
    assert decide(replace(busy, announced=stop), LIMITS, stop.at + SETTLED) == Stop(stop)


def test_after_an_outage_the_whole_warning_is_given() -> None:
    late = NOW + 30 * HOUR
    life = replace(LIFE, active_at=late)
    assert decide(life, LIMITS, late) == Announce(PlannedStop(LIFETIME, late + 30 * MINUTE))


def test_earlier_limit_replaces_announcement_and_longer_withdraws_it() -> None:
    by_lifetime = PlannedStop(LIFETIME, NOW + 24 * HOUR)
    life = replace(LIFE, active_at=NOW + 22 * HOUR, announced=by_lifetime)
    limits = replace(LIMITS, warning=2 * HOUR)
    assert decide(life, limits, NOW + 22.5 * HOUR) == Announce(PlannedStop(IDLE, NOW + 23 * HOUR))
    assert decide(replace(life, active_at=NOW + 23 * HOUR), limits, NOW + 23.5 * HOUR) is None, "it is no earlier"
    assert decide(life, replace(LIMITS, lifetime=48 * HOUR, idle=None), NOW + 24 * HOUR) == Withdraw()


def test_lifetime_extension_is_bounded_and_idle_extension_not() -> None:
    stop = PlannedStop(LIFETIME, NOW + 24 * HOUR)
    once = keepable_until(stop, LIFE, LIMITS, NOW + 23.5 * HOUR)
    assert once == NOW + 26 * HOUR
    twice = keepable_until(PlannedStop(LIFETIME, NOW + 26 * HOUR), LIFE, LIMITS, NOW + 25.5 * HOUR)
    assert twice == NOW + 27 * HOUR, "three hours in all"
    assert keepable_until(PlannedStop(LIFETIME, NOW + 27 * HOUR), LIFE, LIMITS, NOW + 26.5 * HOUR) is None
    assert keepable_until(PlannedStop(IDLE, NOW + 99 * HOUR), LIFE, LIMITS, NOW) == NOW + 101 * HOUR


def test_observation_gap_restarts_idleness_and_unknown_changes_nothing() -> None:
    now = NOW + 50 * MINUTE
    assert last_active(NOW, now - MINUTE, AT_NINE, now) == NOW
    assert last_active(NOW, now - GAP - MINUTE, AT_NINE, now) == now, "nobody looked: it may have been used"
    assert last_active(None, None, AT_NINE, now) == now
    assert last_active(NOW, now - MINUTE, Look(is_known=False), now) == NOW
    assert last_active(NOW, now - MINUTE, Look(True, active_at=NOW + 5 * MINUTE), now) == NOW + 5 * MINUTE
    assert last_active(NOW, now - MINUTE, Look(True, active_at=now + HOUR), now) == now, "no clock of a program counts"
    assert last_active(NOW, now - MINUTE, Look(True, is_active=True), now) == now


# --- A whole life: looks each minute, with outages, silence, use and people who keep it ---

_EVENTS = st.sampled_from(["idle"] * 12 + ["busy", "unknown", "outage", "keep"])
_LIMITS = st.builds(
    StopLimits,
    idle=st.one_of(st.none(), st.integers(1, 90).map(lambda n: n * MINUTE)),
    lifetime=st.one_of(st.none(), st.integers(1, 5).map(lambda n: n * HOUR)),
    warning=st.integers(1, 60).map(lambda n: n * MINUTE),
    keep=st.integers(1, 3).map(lambda n: n * HOUR),
    extension=st.integers(0, 4).map(lambda n: n * HOUR),
)


@given(_LIMITS, st.lists(_EVENTS, min_size=1, max_size=600))
def test_stop_is_announced_and_never_early_or_during_use(limits: StopLimits, events: list[str]) -> None:
    life, now, looked_at = Life(NOW), NOW, None
    told_at: dict[PlannedStop, datetime] = {}
    busy_at = kept_until = None
    for event in events:
        now += 20 * MINUTE if event == "outage" else MINUTE
        seen = Look(event != "unknown", is_active=event == "busy")
        busy_at = now if event == "busy" else busy_at
        life = replace(
            life, active_at=last_active(life.active_at, looked_at, seen, now), is_idle_known=event in ("idle", "outage")
        )
        looked_at = now if seen.is_known else looked_at
        decision = decide(life, limits, now)
        if isinstance(decision, Announce):
            stop = decision.stop
            told_at.setdefault(stop, now)
            assert stop.at > now
            assert stop.cause == LIFETIME or event in ("idle", "outage"), "it is not known to be idle"
            assert stop.at - now >= warning_before(stop.cause, limits) / 2, "nobody is surprised"
            life = replace(life, announced=stop)
        elif isinstance(decision, Withdraw):
            life = replace(life, announced=None)
        elif isinstance(decision, Stop):
            stop = decision.stop
            assert told_at[stop] < stop.at <= now
            if stop.cause == IDLE:
                assert limits.idle is not None
                assert event in ("idle", "outage")
                assert now - (busy_at or NOW) >= limits.idle
            else:
                assert limits.lifetime is not None
                assert now - NOW >= limits.lifetime
            assert kept_until is None or kept_until[0] != stop.cause or kept_until[1] <= now
            return
        if life.announced is not None:
            assert now <= life.announced.at + GAP, "no stop is told that does not come"
        if event == "keep" and life.announced is not None:
            until = keepable_until(life.announced, life, limits, now)
            if until is not None:
                kept_until = (life.announced.cause, until)
                is_idle = life.announced.cause == IDLE
                life = replace(
                    life,
                    announced=None,
                    kept_idle_until=until if is_idle else life.kept_idle_until,
                    kept_lifetime_until=life.kept_lifetime_until if is_idle else until,
                )


# --- Whose limit holds ---


@pytest.mark.parametrize(
    ("base", "own", "bound", "expected"),
    [(60, None, 0, 60), (60, 30, 0, 30), (60, 90, 0, 60), (60, 90, 80, 80), (0, 90, 0, 90)],
)
def test_project_may_change_a_limit_up_to_the_bound(base: int, own: int | None, bound: int, expected: int) -> None:
    assert effective(base, own, bound) == expected


def test_a_tier_replaces_the_configuration_for_workspaces_and_apps() -> None:
    values = {**VALUES, WORKSPACE_IDLE.key: 120, WORKSPACE_LIFETIME.key: 48}
    plain = limits_of("workspace", values, OwnLimits(), OwnLimits())
    assert (plain.idle, plain.lifetime) == (2 * HOUR, 48 * HOUR)
    app = limits_of("app", values, OwnLimits(), OwnLimits())
    assert (app.idle, app.lifetime, app.any) == (None, None, False)
    own = limits_of("app", values, OwnLimits(30, 5), OwnLimits(None, 4))
    assert (own.idle, own.lifetime) == (HOUR / 2, 4 * HOUR)
    never = limits_of("workspace", values, OwnLimits(0, 0), OwnLimits())
    assert not never.any
