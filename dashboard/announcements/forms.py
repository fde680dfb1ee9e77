"""The form with which operators and admins write an announcement. Its times are UTC."""

from datetime import datetime
from typing import Any

from django import forms
from django.utils import timezone

from grid.core.translation import gettext as _
from grid.models import Announcement
from grid.models.announcement import LONGEST_ANNOUNCEMENT


def _moment(label: str, help: str) -> forms.DateTimeField:
    widget = forms.DateTimeInput(format="%Y-%m-%dT%H:%M", attrs={"type": "datetime-local"})
    return forms.DateTimeField(label=label, required=False, widget=widget, help_text=help)


class AnnouncementForm(forms.ModelForm):  # type: ignore[type-arg]
    from_at = _moment(_("Shown from (UTC)"), _("Leave empty to show it at once. All times are UTC."))
    until_at = _moment(_("Shown until (UTC)"), _("Leave empty to show it until somebody ends it."))
    no_launches_from = _moment(
        _("No new launches from (UTC)"),
        _(
            "For maintenance: launches are refused from then until the announcement ends, queued executions wait, and running ones "
            "continue. Their owners are notified. Leave empty to take launches."
        ),
    )

    class Meta:
        model = Announcement
        fields = ("text", "severity", "from_at", "until_at", "no_launches_from")
        labels = {"text": _("Text"), "severity": _("Severity")}
        help_texts = {
            "text": _(
                "At most {longest} characters, without formatting. Everybody who is logged in reads it on every page.",
                longest=LONGEST_ANNOUNCEMENT,
            ),
            "severity": _("A warning stands out more, and comes first."),
        }
        widgets = {"text": forms.Textarea(attrs={"rows": 3})}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._now = timezone.now()

    def clean_text(self) -> str:
        """Return the text as one line: it is shown as one."""
        return " ".join(str(self.cleaned_data["text"]).split())

    def clean_from_at(self) -> datetime:
        """Return when it is first shown; what is shown already keeps its seconds, which the form does not show."""
        typed: datetime | None = self.cleaned_data["from_at"]
        return _unless_same(typed, self.instance.from_at if not self.instance._state.adding else None) or self._now

    def clean_until_at(self) -> datetime | None:
        return _unless_same(self.cleaned_data["until_at"], self.instance.until_at)

    def clean_no_launches_from(self) -> datetime | None:
        return _unless_same(self.cleaned_data["no_launches_from"], self.instance.no_launches_from)

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or self.cleaned_data
        begins, ends = data.get("from_at"), data.get("until_at")
        if ends is not None and ends <= self._now:
            self.add_error("until_at", _("Choose a time that is yet to come, or leave it empty."))
        elif begins is not None and ends is not None and ends <= begins:
            self.add_error("until_at", _("Choose a time after the one from which it is shown."))
        closes = data.get("no_launches_from")
        if closes is not None and begins is not None and closes < begins:
            self.add_error("no_launches_from", _("Choose a time at which the announcement is shown already."))
        elif closes is not None and ends is not None and closes >= ends:
            self.add_error("no_launches_from", _("Choose a time before the announcement ends."))
        return data

    def validate_constraints(self) -> None:
        """Leave the constraint to `clean`, which names the field."""


def _unless_same(typed: datetime | None, stored: datetime | None) -> datetime | None:
    """Return what was typed, or what is stored when that was shown in the form."""
    is_same = typed is not None and stored is not None and typed == stored.replace(second=0, microsecond=0)
    return stored if is_same else typed
