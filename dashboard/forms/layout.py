"""How a form is laid out: its fields in titled sections, some of them closed until needed."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from django import forms
from django.forms import BoundField


@dataclass(frozen=True, slots=True)
class Section:
    """`fields` in their order; a closed one opens when something in it is filled in or wrong."""

    title: str
    purpose: str
    fields: tuple[str, ...]
    is_closed: bool = False


@dataclass(frozen=True, slots=True)
class LaidOutField:
    """`unit` is what the number counts; a wide field takes the section's whole width."""

    bound: BoundField
    unit: str
    is_wide: bool


@dataclass(frozen=True, slots=True)
class LaidOutSection:
    title: str
    purpose: str
    fields: tuple[LaidOutField, ...]
    is_closed: bool
    is_open: bool

    @property
    def names(self) -> list[str]:
        return [one.bound.name for one in self.fields]


def lay_out(
    form: forms.BaseForm, sections: Collection[Section], *, units: Mapping[str, str], wide: Collection[str]
) -> list[LaidOutSection]:
    """Fields that the form does not have (any more) are left out."""
    laid_out = []
    for section in sections:
        fields = [form[name] for name in section.fields if name in form.fields]
        laid_out.append(
            LaidOutSection(
                title=section.title,
                purpose=section.purpose,
                fields=tuple(LaidOutField(one, units.get(one.name, ""), _is_wide(one, wide)) for one in fields),
                is_closed=section.is_closed,
                is_open=any(one.errors or one.value() for one in fields),
            )
        )
    return laid_out


def _is_wide(field: BoundField, wide: Collection[str]) -> bool:
    return field.name in wide or isinstance(field.field.widget, forms.Textarea | forms.CheckboxSelectMultiple)
