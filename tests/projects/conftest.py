"""The fixtures of tests of pages and of launches that this room uses."""

from tests.support.shop import configure as configure, shop as shop
