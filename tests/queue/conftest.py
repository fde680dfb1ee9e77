"""The fixtures of tests of pages and of launches that this room uses, and a shop whose database is a file."""

from tests.support.database import on_file as on_file
from tests.support.pages import clock as clock, cluster as cluster, patient as patient, runtime as runtime, tier as tier
from tests.support.shop import configure as configure, shop as shop, worker_tier as worker_tier
