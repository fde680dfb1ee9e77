"""Lookups of ours: what is asked for among numbers."""

import pytest
from django.forms import ModelMultipleChoiceField, ValidationError

from grid.models import User

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("number", [10**19, -(10**19), int("9" * 400)])
def test_impossible_number_is_in_no_row(number: int) -> None:
    user = User.objects.create_user("alice")
    assert list(User.objects.filter(pk__in=[number, user.pk])) == [user]
    assert not User.objects.filter(pk__in=[number]).exists()
    assert list(User.objects.exclude(pk__in=[number])) == [user]


def test_a_form_refuses_such_a_choice() -> None:
    with pytest.raises(ValidationError, match="not one of the available choices"):
        ModelMultipleChoiceField(User.objects.all()).clean(["9" * 30])
