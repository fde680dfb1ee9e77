"""A prepared query answers as Django's own would, and is put together once for each connection."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connections
from django.db.models import Count, QuerySet

from grid.database.prepared import Prepared
from grid.models import Execution, HardwareTier, StoredSecret
from tests.support.shop import NOW, Shop, shop as shop

pytestmark = pytest.mark.django_db


def test_rows_are_models_as_django_reads_them(shop: Shop) -> None:
    launched = shop.launch()
    of_owner = Prepared(1, lambda owner: Execution.objects.filter(owner=owner))
    (row,) = of_owner(shop.people.owner.pk)
    own = Execution.objects.get()
    assert {name: value for name, value in vars(row).items() if name != "_state"} == {
        name: value for name, value in vars(own).items() if name != "_state"
    }
    row.title = "Changed"
    row.save(update_fields=["title"])
    assert Execution.objects.get(pk=launched.pk).title == "Changed"
    assert of_owner(shop.people.teammate.pk) == []


def test_moments_are_compared_and_read_as_moments(shop: Shop) -> None:
    shop.launch()
    since = Prepared(
        1, lambda at: Execution.objects.filter(requested_at__gte=at).values_list("requested_at", flat=True)
    )
    assert since(NOW) == [NOW]
    assert since(NOW + timedelta(microseconds=1)) == []


def test_counts_come_in_the_columns_that_were_asked_for(shop: Shop) -> None:
    shop.launch()
    shop.launch()
    by_tier = Prepared(0, lambda: Execution.objects.order_by().values_list("tier_id").annotate(Count("pk")))
    assert by_tier() == [("small", 2)]


def test_columns_that_were_left_out_are_read_when_asked_for(shop: Shop) -> None:
    StoredSecret.objects.create(name="KEY", owner=shop.people.owner, ciphertext="hidden")
    (secret,) = Prepared(1, lambda owner: StoredSecret.objects.filter(owner=owner).defer("ciphertext"))(
        shop.people.owner.pk
    )
    assert secret.get_deferred_fields() == {"ciphertext"}
    assert secret.ciphertext == "hidden"


def test_query_is_made_once_for_a_connection(shop: Shop) -> None:
    made = 0

    def build(id: Any) -> "QuerySet[HardwareTier, HardwareTier]":
        nonlocal made
        made += 1
        return HardwareTier.objects.filter(pk=id)

    tier = Prepared(1, build)
    assert [[row.pk for row in tier(id)] for id in ("small", "none", "small")] == [["small"], [], ["small"]]
    assert made == 1
    connections["default"].__dict__.pop("prepared_queries")
    assert len(tier("small")) == 1
    assert made == 2
