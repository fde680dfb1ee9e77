"""The base of the forms of what admins edit; each room has the form of its own kind."""

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from django import forms

from dashboard.shell.forms.fields import LaidOutSection, Section, lay_out
from grid.core.translation import gettext as _

ID_HELP = _("Lower-case letters, digits and dashes; it never changes.")


class CatalogueForm(forms.ModelForm):  # type: ignore[type-arg]
    """The base of these forms. An id is chosen once, because names of Kubernetes objects and URLs contain it."""

    layout: ClassVar[tuple[Section, ...]] = ()
    units: ClassVar[Mapping[str, str]] = {}
    wide: ClassVar[Collection[str]] = ("description",)

    def __init__(self, *args: Any, pools: Collection[str] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.pools = pools
        if self.instance.pk and not self.instance._state.adding:
            del self.fields["id"]

    def sections(self) -> list[LaidOutSection]:
        return lay_out(self, self.layout, units=self.units, wide=self.wide)

    def save(self, commit: bool = True) -> Any:
        """Save the object. Raise IntegrityError when a new object's id was taken meanwhile; Django alone would overwrite that object."""
        if not commit:
            raise NotImplementedError("what is chosen of other tables belongs to an object that is stored")
        instance = super().save(commit=False)
        instance.save(force_insert=instance._state.adding)
        self.save_m2m()
        return instance

    def consequence(self) -> str:
        """Return a sentence about what saving changed beyond the fields; "" without any such change."""
        return ""

    def validate_constraints(self) -> None:
        """Leave the constraints to the database: saving a new default tier unmarks the old one in the same transaction."""
