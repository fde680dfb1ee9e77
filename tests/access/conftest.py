"""The web process's cluster and runtime are those of its pages' tests."""

from tests.support.pages import clock, cluster, runtime

__all__ = ["clock", "cluster", "runtime"]
