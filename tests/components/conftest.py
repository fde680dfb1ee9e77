"""The fixtures of tests of pages that this room uses."""

from tests.support.pages import admin, clock, cluster, patient, runtime, tier, two_pools

__all__ = ["admin", "clock", "cluster", "patient", "runtime", "tier", "two_pools"]
