"""The fixtures of tests of pages that this room uses."""

from tests.support.pages import clock as clock, cluster as cluster, patient as patient, runtime as runtime
