"""The fixtures of tests of pages that this room uses."""

from tests.support.pages import clock as clock
from tests.support.pages import cluster as cluster
from tests.support.pages import patient as patient
from tests.support.pages import runtime as runtime
