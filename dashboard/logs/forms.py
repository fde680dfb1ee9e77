"""The admins' form for an entry of the knowledge base."""

from typing import Any

from django import forms

from dashboard.administration.forms import CatalogueForm
from dashboard.shell.forms.fields import Section
from grid.core.translation import gettext as _
from grid.logs import knowledge
from grid.logs.knowledge import MOST_ENTRIES
from grid.models import KnowledgeEntry


class KnowledgeForm(CatalogueForm):
    layout = (
        Section(_("The line"), _("Searched in the last lines of a log."), ("id", "pattern")),
        Section(_("What it means"), _("Shown to whoever may read the log."), ("meaning", "cure", "link")),
    )
    wide = ("pattern", "meaning", "cure", "link")

    class Meta:
        model = KnowledgeEntry
        fields = ("id", "pattern", "meaning", "cure", "link")
        labels = {"pattern": _("Pattern"), "meaning": _("Meaning"), "cure": _("Cure"), "link": _("Link"), "id": "Id"}
        help_texts = {
            "id": _("Lower-case letters, digits and dashes; it never changes."),
            "pattern": _(
                "A regular expression of RE2, such as ^LicenseError: (\\S+). It is searched in each line; (?i) at its "
                "beginning ignores case. Entries of your own are tried before the built-in ones."
            ),
            "meaning": _("One sentence, such as: No license for {} is free. {} is what the first parentheses match."),
            "cure": _("What to do next, in a sentence or two."),
            "link": _("Where to read more: https://… or a path of this site. Leave empty for none."),
        }
        widgets = {
            "pattern": forms.TextInput(attrs={"spellcheck": "false", "autocomplete": "off", "class": "mono"}),
            "link": forms.TextInput(attrs={"spellcheck": "false", "autocomplete": "off", "inputmode": "url"}),
        }

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or self.cleaned_data
        if self.instance._state.adding and KnowledgeEntry.objects.filter(is_archived=False).count() >= MOST_ENTRIES:
            raise forms.ValidationError(
                _("At most {most_entries} entries are searched. Archive one first.", most_entries=MOST_ENTRIES)
            )
        pattern = data.get("pattern", "")
        if pattern and not knowledge.has_room_for(pattern, key=self.instance.pk or ""):
            self.add_error(
                "pattern",
                _("All entries together are too large to be searched. Use smaller repetitions, or archive another."),
            )
        return data
