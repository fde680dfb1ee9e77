"""The database after a test with transactions of its own is as it was after the migrations."""

import pytest
from django.apps import apps
from django.contrib.auth.models import Permission
from django.core.management import call_command

from grid.models import Execution
from tests.support.emptying import empty
from tests.support.shop import Shop, shop

__all__ = ["shop"]


def rows() -> dict[str, int]:
    return {model._meta.label: model._default_manager.count() for model in apps.get_models() if model._meta.managed}


@pytest.mark.django_db(transaction=True)
def test_database_is_emptied_as_django_does(shop: Shop) -> None:
    shop.launch_with_cluster()
    assert Execution.objects.count() == 2
    permissions = set(Permission.objects.values_list("content_type__model", "codename"))
    empty("default")
    left = rows()
    assert set(Permission.objects.values_list("content_type__model", "codename")) == permissions
    call_command("flush", verbosity=0, interactive=False)
    assert left == rows()
