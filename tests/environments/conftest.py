"""The fixtures of tests of pages and of launches that this room uses."""

from tests.support.pages import (
    admin as admin,
    clock as clock,
    cluster as cluster,
    patient as patient,
    runtime as runtime,
    two_pools as two_pools,
)
from tests.support.shop import shop as shop
