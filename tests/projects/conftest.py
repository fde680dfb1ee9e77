"""The fixtures of tests of pages and of launches that this room uses."""

from tests.support.shop import configure as configure
from tests.support.shop import shop as shop
