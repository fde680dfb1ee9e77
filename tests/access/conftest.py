"""The web process's cluster and runtime are those of its pages' tests."""

from tests.dashboard.conftest import clock, cluster, runtime

__all__ = ["clock", "cluster", "runtime"]
