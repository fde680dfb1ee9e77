"""Lays out a form's fields in titled sections, some of them collapsed until needed."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from django import forms
from django.forms import BoundField


@dataclass(frozen=True, slots=True)
class Section:
    """A section with its `fields` in order; a collapsible one (`is_closed`) starts open when one of its fields is filled in or wrong."""

    title: str
    purpose: str
    fields: tuple[str, ...]
    is_closed: bool = False


@dataclass(frozen=True, slots=True)
class LaidOutField:
    """A field in a section; `unit` is its number's unit, and a wide field takes the section's whole width."""

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
        return [field.bound.name for field in self.fields]


def lay_out(
    form: forms.BaseForm, sections: Collection[Section], *, units: Mapping[str, str], wide: Collection[str]
) -> list[LaidOutSection]:
    """Return the sections with the form's fields; fields that the form does not have (any more) are left out."""
    laid_out = []
    for section in sections:
        fields = [form[name] for name in section.fields if name in form.fields]
        laid_out.append(
            LaidOutSection(
                title=section.title,
                purpose=section.purpose,
                fields=tuple(LaidOutField(field, units.get(field.name, ""), _is_wide(field, wide)) for field in fields),
                is_closed=section.is_closed,
                is_open=any(field.errors or field.value() for field in fields),
            )
        )
    return laid_out


def _is_wide(field: BoundField, wide: Collection[str]) -> bool:
    return field.name in wide or isinstance(field.field.widget, forms.Textarea | forms.CheckboxSelectMultiple)
