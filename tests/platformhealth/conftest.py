"""The fixtures of tests of pages and of launches that this room uses."""

from tests.support.pages import admin, clock, cluster, patient, runtime, tier, two_pools
from tests.support.shop import configure, shop, worker_tier

__all__ = ["admin", "clock", "cluster", "configure", "patient", "runtime", "shop", "tier", "two_pools", "worker_tier"]
