"""Lookups of ours, registered when the models are loaded."""

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import IntegerField
from django.db.models.lookups import In


@IntegerField.register_lookup
class IntegerIn(In):
    """Leaves out numbers that no row can have, as Django's `exact` and `lt` of integers do: SQLite's driver and PostgreSQL refuse them
    with an error, and a form's choices may be any number that somebody sends."""

    def process_rhs(self, compiler: Any, connection: BaseDatabaseWrapper) -> Any:
        if self.rhs_is_direct_value():
            least, most = connection.ops.integer_field_range(self.lhs.output_field.get_internal_type())
            self.rhs = [value for value in self.rhs if not isinstance(value, int) or _is_between(value, least, most)]
        return super().process_rhs(compiler, connection)


def _is_between(number: int, least: int | None, most: int | None) -> bool:
    return (least is None or number >= least) and (most is None or number <= most)
