"""The fixtures of tests of pages and of launches that this room uses."""

from tests.support.pages import clock as clock
from tests.support.pages import cluster as cluster
from tests.support.pages import patient as patient
from tests.support.pages import runtime as runtime
from tests.support.shop import shop as shop
