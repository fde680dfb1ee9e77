"""Formats times, ages, booleans and quantities as kubectl does."""

import math
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from grid.core.quantity import parse_quantity

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}


def parse_time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def full_time(text: str | None) -> str:
    """Return the time as RFC 1123 with a numeric zone: Sat, 21 Nov 2026 04:52:25 +0000."""
    moment = parse_time(text) or datetime.fromisoformat("0001-01-01T00:00:00+00:00")
    return f"{moment:%a, %d %b} {moment.year:04d} {moment:%H:%M:%S %z}"


def age(text: str | None, now: datetime) -> str:
    """Return the time since then, as duration.HumanDuration of k8s.io/apimachinery writes it."""
    moment = parse_time(text)
    return "<unknown>" if moment is None else human_duration((now - moment).total_seconds())


def human_duration(seconds: float) -> str:
    """Return at most two units; the smaller one only while it matters."""
    whole = int(seconds)  # Go truncates towards zero
    if whole < -1:
        return "<invalid>"
    if whole < 0:
        return "0s"
    if whole < 2 * _MINUTE:
        return f"{whole}s"
    if whole < 10 * _MINUTE:
        return _two(whole // _MINUTE, "m", whole % _MINUTE, "s")
    if whole < 3 * _HOUR:
        return f"{whole // _MINUTE}m"
    if whole < 8 * _HOUR:
        return _two(whole // _HOUR, "h", whole // _MINUTE % 60, "m")
    if whole < 2 * _DAY:
        return f"{whole // _HOUR}h"
    if whole < 8 * _DAY:
        return _two(whole // _DAY, "d", whole // _HOUR % 24, "h")
    days = whole // _DAY
    if days < 2 * 365:
        return f"{days}d"
    return _two(days // 365, "y", days % 365, "d") if days < 8 * 365 else f"{days // 365}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


def capital_bool(value: Any) -> str:
    return "True" if value else "False"


def small_bool(value: Any) -> str:
    return "true" if value else "false"


@dataclass(frozen=True, slots=True)
class Amount:
    """A quantity that remembers whether its suffix is binary; a sum takes that from its first addend that is not zero."""

    value: Decimal = Decimal(0)
    binary: bool = False

    @classmethod
    def parse(cls, text: str | int | None) -> "Amount":
        return cls(parse_quantity(text), str(text).endswith("i")) if text is not None else cls()

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(self.value + other.value, self.binary if self.value else other.binary)

    def max(self, other: "Amount") -> "Amount":
        return other if other.value > self.value else self

    def share_of(self, whole: "Amount") -> int:
        """Return the percentage of `whole`, truncated; 0 when `whole` is 0."""
        return int(self.value / whole.value * 100) if whole.value else 0

    def __str__(self) -> str:
        """Return the canonical form: the largest suffix that keeps the number whole."""
        if self.binary and abs(self.value) >= 1024:
            number, power = math.ceil(self.value), 0
            while number % 1024 == 0 and power < len(_BINARY) - 1:
                number, power = number // 1024, power + 1
            return f"{number}{_BINARY[power]}"
        exponent = -9
        number = math.ceil(self.value * 10**9)
        if number == 0:
            return "0"
        while number % 1000 == 0 and exponent < 18:
            number, exponent = number // 1000, exponent + 3
        return f"{number}{_DECIMAL[exponent]}"
