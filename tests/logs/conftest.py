"""The fixtures of tests of pages and of launches that this room uses."""

from tests.support.pages import clock as clock, cluster as cluster, patient as patient, runtime as runtime
from tests.support.shop import shop as shop
