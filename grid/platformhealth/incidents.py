"""When an incident begins and ends: a light must be bad, or well, in two looks in a row, whoever looks; pure."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from grid.platformhealth.facts import Light

IN_A_ROW = 2
UNATTENDED = timedelta(minutes=3)  # without a look; a leader looks twice a minute


class Streak(msgspec.Struct, frozen=True):
    """How often in a row a light was bad or not, and since when. It is stored, so that the next leader goes on counting."""

    is_bad: bool
    count: int
    since: datetime


class Turn(msgspec.Struct, frozen=True):
    """A light that has turned bad, or well again, and when that was seen first."""

    light: Light
    at: datetime


class Judged(msgspec.Struct, frozen=True):
    streaks: dict[str, Streak]
    begun: tuple[Turn, ...]
    ended: tuple[Turn, ...]


def judge(lights: Sequence[Light], streaks: Mapping[str, Streak], unended: Collection[str], now: datetime) -> Judged:
    """Compare a look with those before. `unended` are the keys of open incidents. A light of which nothing is known changes nothing."""
    known = dict(streaks)
    begun: list[Turn] = []
    ended: list[Turn] = []
    for light in lights:
        if light.severity == "wait":
            continue
        is_bad, before = light.severity == "problem", known.get(light.key)
        if before is not None and before.is_bad == is_bad:
            streak = Streak(is_bad, min(before.count + 1, IN_A_ROW), before.since)
        else:
            streak = Streak(is_bad, 1, now)
        known[light.key] = streak
        if streak.count >= IN_A_ROW and is_bad != (light.key in unended):
            (begun if is_bad else ended).append(Turn(light, streak.since))
    return Judged(known, tuple(begun), tuple(ended))
