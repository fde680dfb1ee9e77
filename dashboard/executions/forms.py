"""The launch form, which offers only what the user may use, and shows every problem at its field.

Kinds of executions add sections to it. A section parses; the rules of its kind decide what may be launched.
"""

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import chain
from typing import Any, ClassVar

from django import forms
from django.conf import settings

from dashboard.shell.forms.fields import add_problems
from dashboard.shell.viewmodels.format import cores_words, memory_words
from dashboard.usage.viewmodels.usage import price_words
from grid.core.errors import Problem
from grid.core.translation import gettext as _
from grid.core.wording import plural
from grid.diagnosis.launchfit import Pools
from grid.executions.launchrequest import LaunchRequest, Offers, StoredRows
from grid.executions.names import free_name, names_in_use
from grid.executions.request import MAXIMUM_TITLE, validate
from grid.models import Environment, Execution, HardwareTier, Job, User


@dataclass(frozen=True, slots=True)
class SectionPlace:
    """For what a section is made. `slots` are free, and `offers` are the whole form's."""

    user: User
    offers: Offers
    initial: Mapping[str, Any]
    environment: Environment | None
    slots: int
    is_attached: bool


class LaunchSection(forms.Form):
    """The section of one kind, for an execution of that kind or, `is_attached`, for one that another kind is launched with."""

    template: ClassVar[str]
    attached_template: ClassVar[str] = ""
    attaches_to: ClassVar[frozenset[str]] = frozenset()  # kinds that may be launched with one of this kind
    # Whether an execution of this kind has an environment and a tier of the form's own; else the section has them.
    has_machine: ClassVar[bool] = True

    @classmethod
    def offered(cls, data: Mapping[str, Any] | None, place: SectionPlace) -> "LaunchSection | None":
        """Return the section; None when the user may not launch such a thing."""
        raise NotImplementedError

    @classmethod
    def linked(cls, query: Mapping[str, str]) -> dict[str, Any]:
        """Return the initial values that an address asks for; nothing of it is checked here."""
        return {}

    @classmethod
    def typed_in(cls, execution: Execution) -> dict[str, Any]:
        """Return the initial values as an execution of this kind was launched with."""
        return {}

    def launch_values(self) -> dict[str, Any]:
        """Return the fields of `LaunchRequest` that it sets; it must have no errors."""
        raise NotImplementedError

    def choices(self) -> Sequence[str]:
        """Return all chosen values as texts, to tell two launches apart."""
        raise NotImplementedError

    def link(self) -> dict[str, str]:
        """Return the values for an address that opens the form like this."""
        raise NotImplementedError

    def as_sent(self) -> dict[str, Any]:
        """Return the data that a browser would send for the unchanged section."""
        raise NotImplementedError

    def name_of_launched(self) -> str:
        """Return what is launched in a word or two, such as a job's script; "" where its environment says it."""
        return ""

    def not_offered(self, asked: Mapping[str, Any]) -> list[str]:
        """Return a sentence for each field that does not offer what was asked for."""
        return []

    def main_tiers(self) -> tuple[str, Sequence[HardwareTier]] | None:
        """Return the field of the tier that decides whether it fits, and what it offers; None where that is the form's own."""
        return None

    def launch(self, request: LaunchRequest, *, id: str, now: datetime) -> Job | None:
        """Store a valid request in a way of its own and return what was made; None where the usual way is right. Raise Rejected."""
        return None

    def add_problems(self, problems: Iterable[Problem]) -> list[Problem]:
        """Add each problem at its field; return those that are not about a field of this section."""
        problems = list(problems)
        add_problems(self, (problem for problem in problems if problem.path in self.fields))
        return [problem for problem in problems if problem.path not in self.fields]


def tier_option(tier: HardwareTier) -> str:
    """Return a tier in one line: "Small: 1 core, 4 GiB, $0.05 an hour"."""
    gpus = [plural(tier.gpus, "GPU", "GPUs")] if tier.gpus else []
    parts = [cores_words(tier.cores), memory_words(tier.memory), *gpus, price_words(tier.cost_per_hour)]
    return f"{tier.name}: {', '.join(parts)}"


SECTIONS: dict[str, type[LaunchSection]] = {}  # by kind, of the registered faces


def attached_kind(kind: str) -> str:
    """Return the kind with which one of this kind may be launched; "" without any."""
    return next((other for other, section in SECTIONS.items() if kind in section.attaches_to), "")


_ID_LENGTH = 12
_LONGEST_NAME = MAXIMUM_TITLE - 10  # with a number behind it as long as a title may be
_NOT_OFFERED = {
    "project": _("The project that was asked for is not available to you; choose another."),
    "environment": _("The environment that was asked for is not available to you; choose another."),
    "tier": _("The hardware tier that was asked for is not available to you; choose another."),
}


def new_token() -> str:
    """Return a token for one rendering of the form, so that submitting it twice launches once."""
    return secrets.token_urlsafe(16)


def linked(query: Mapping[str, str]) -> dict[str, Any]:
    """Return the initial values that an address asks for; whatever is unknown is left out, and nothing of it is checked here."""
    asked = {name: query[name] for name in (*_NOT_OFFERED, "title") if query.get(name)}
    for section in SECTIONS.values():
        asked |= section.linked(query)
    # PostgreSQL does not take a NUL character in a question.
    asked = {name: value for name, value in asked.items() if not (isinstance(value, str) and "\0" in value)}
    return asked | ({"with_cluster": True} if query.get("with_cluster") == "on" else {})


class OfferedRowField(forms.ModelChoiceField):  # type: ignore[type-arg]
    """One of the `rows` that its form offers, which are read once for the page and for what was sent."""

    rows: Iterable[Any] = ()

    def to_python(self, value: Any) -> Any:
        if value in self.empty_values:
            return None
        chosen = next((row for row in self.rows if str(row.pk) == str(value)), None)
        if chosen is None:
            raise forms.ValidationError(self.error_messages["invalid_choice"], code="invalid_choice")
        return chosen


def _choice(label: str, required: str, invalid: str) -> OfferedRowField:
    errors = {"required": required, "invalid_choice": invalid}
    return OfferedRowField(label=label, queryset=None, empty_label=None, error_messages=errors)


class MachineForm(forms.Form):
    """An environment and a tier, from those offered to the user for `kind`."""

    environment = _choice(
        _("Environment"), _("Choose an environment."), _("This environment is no longer available; choose another.")
    )
    tier = _choice(
        _("Tier"), _("Choose a hardware tier."), _("This hardware tier is not available to you; choose another.")
    )

    def __init__(
        self,
        data: Mapping[str, Any] | None,
        *,
        user: User,
        kind: str,
        initial: Mapping[str, Any],
        offers: Offers | None = None,
    ) -> None:
        """Create the form; the `offers` to this user are read when they are not given."""
        super().__init__(data, initial=dict(initial))
        self.user = user
        self.offers = offers or Offers(user)
        self.environments, self.tiers = self.offers.environments(kind), self.offers.tiers(kind)
        self._offered: dict[str, Iterable[Any]] = {}
        # Fields for which nothing is chosen, because what was asked for is not offered.
        self.withheld: frozenset[str] = frozenset()
        self.offer("environment", self.environments)
        self.offer("tier", self.tiers)

    @property
    def was_refused(self) -> bool:
        """True when the form was sent and has errors, here or in a section."""
        return self.is_bound and not self.is_valid()

    def offer(self, name: str, rows: Iterable[Any]) -> None:
        field = self.fields[name]
        assert isinstance(field, OfferedRowField)
        field.rows = self._offered[name] = rows

    def chosen(self, name: str) -> str:
        """Return the chosen project, environment or tier if it is offered, else the default tier or the first choice; "" without any."""
        if name not in self.fields or name in self.withheld:
            return ""
        # The default tier comes first, and what is for a framework last.
        offered = sorted(self._offered[name], key=lambda row: bool(getattr(row, "frameworks", None)))
        offered.sort(key=lambda row: not getattr(row, "is_default", False))
        value, keys = str(self[name].value() or ""), [row.pk for row in offered]
        return value if value in keys else next(iter(keys), "")

    def chosen_row(self, name: str) -> Any:
        """Return the row that `chosen` names; None without one. The rows are read once for the whole page."""
        id = self.chosen(name)
        return next((row for row in self._offered[name] if row.pk == id), None)


class LaunchForm(MachineForm):
    """The form of one `kind` of execution; `own` is that kind's section."""

    project = _choice(
        _("Project"), _("Choose a project."), _("Choose one of your projects; this one is archived or not yours.")
    )
    title = forms.CharField(label=_("Title"), required=False)
    token = forms.CharField(required=False, max_length=64, widget=forms.HiddenInput)
    with_cluster = forms.BooleanField(required=False)

    def __init__(
        self,
        data: Mapping[str, Any] | None = None,
        *,
        user: User,
        kind: str,
        initial: Mapping[str, Any] | None = None,
        slots: int = 0,
        pools: Pools | None = None,
        offers: Offers | None = None,
        is_submitted: bool = False,
    ) -> None:
        """Create the form; `slots` of the user are free, `pools` is None while the nodes are not known. Of one that is submitted, whoever
        stores the request validates it, unless its kind stores it in a way of its own."""
        super().__init__(data, user=user, kind=kind, initial=initial or {}, offers=offers)
        self.kind = kind
        self.pools = pools
        self._is_submitted = is_submitted
        section, self.attached_kind = SECTIONS.get(kind), attached_kind(kind)
        self.has_machine = section is None or section.has_machine
        self.projects = self.offers.projects
        self.offer("project", self.projects)
        if not self.has_machine:
            del self.fields["environment"], self.fields["tier"]
        self._slots = slots
        self.own: LaunchSection | None = section.offered(data, self._place) if section is not None else None

    @cached_property
    def _place(self) -> SectionPlace:
        return SectionPlace(self.user, self.offers, self.initial, self.chosen_row("environment"), self._slots, False)

    @cached_property
    def attached(self) -> LaunchSection | None:
        """The section of the kind that may come along; None when it is not offered. What is sent without one never reads what it offers."""
        section = SECTIONS.get(self.attached_kind)
        place = replace(self._place, is_attached=True)
        return section.offered(self.data if self.is_bound else None, place) if section else None

    @property
    def wants_attached(self) -> bool:
        return self.has_machine and bool(self["with_cluster"].value())

    @property
    def sections(self) -> list[LaunchSection]:
        """The sections whose values count."""
        return list(filter(None, (self.attached if self.wants_attached else None, self.own)))

    def is_valid(self) -> bool:
        return super().is_valid() and not any(section.errors for section in self.sections)

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        needed = ([] if self.has_machine else [self.own]) + ([self.attached] if self.wants_attached else [])
        if any(section is None or not section.is_bound for section in needed):
            refusal = _(
                "A cluster like this is not available to you. Choose from what is offered below, and launch again."
            )
            self.add_error(None, refusal)
        are_read = [section.is_valid() for section in self.sections]
        if all(are_read) and not self.errors and not (self._is_submitted and self.own is None):
            self.add_problems(validate(self.request, pools=self.pools, stored=self.stored))
        return cleaned

    @cached_property
    def stored(self) -> StoredRows:
        """The rows of the request as they are now, for a page that stores nothing; each is read once."""
        return StoredRows(self.request)

    @cached_property
    def request(self) -> LaunchRequest:
        """What to launch; the form must have no errors."""
        values = {name: self.cleaned_data[name] for name in (*_NOT_OFFERED, "title") if name in self.fields}
        values["title"] = values["title"] or self.suggested_name
        for section in self.sections:
            values |= section.launch_values()
        return LaunchRequest(owner=self.user, kind=self.kind, **values)

    def add_problems(self, problems: Iterable[Problem]) -> None:
        """Add each problem at its field, which may be in a section."""
        for section in self.sections:
            problems = section.add_problems(problems)
        add_problems(self, problems)

    @property
    def name_of_launched(self) -> str:
        """What is launched, in a word or two; "" while that is not chosen."""
        environment = self.chosen_row("environment")
        name = self.own.name_of_launched() if self.own is not None else ""
        return (name or (environment.name if environment is not None else ""))[:_LONGEST_NAME]

    @cached_property
    def suggested_name(self) -> str:
        """The title of the launch if none is typed: one that nothing else of the person has now."""
        name = self.name_of_launched
        return free_name(name, names_in_use(self.user, name)) if name else ""

    def execution_id(self) -> str:
        """Return the same id for the same rendering of the form with the same choices, so that the database allows one launch only.
        Who goes back in the browser and changes a choice does launch a second time. A suggested title is no choice: it is another one
        when the form is sent again."""
        request, choices = self.request, chain.from_iterable(section.choices() for section in self.sections)
        parts = (str(self.user.pk), self.cleaned_data["token"] or new_token(), self.kind)
        rows = (request.project.pk, request.environment.pk, request.tier.pk)
        text = "\x00".join((*parts, *rows, self.cleaned_data["title"], *choices))
        return hmac.new(settings.SECRET_KEY.encode(), text.encode(), hashlib.sha256).hexdigest()[:_ID_LENGTH]

    def withhold(self, asked: Mapping[str, Any]) -> list[str]:
        """Choose nothing where what was asked for is not offered, and return a sentence for each such field."""
        wanted = {name: str(asked[name]) for name in _NOT_OFFERED if name in self.fields and asked.get(name)}
        gone = [name for name, id in wanted.items() if all(str(row.pk) != id for row in self._offered[name])]
        self.withheld = frozenset(gone)
        of_sections = [section.not_offered(asked) for section in (self.attached, self.own) if section is not None]
        return [*(_NOT_OFFERED[name] for name in gone), *chain.from_iterable(of_sections)]

    def link(self) -> dict[str, str]:
        """Return the values with which the form can be opened again, by somebody else too; `linked` reads them."""
        own = {name: self.chosen(name) for name in _NOT_OFFERED if name in self.fields}
        values = {"kind": self.kind, **own, "title": str(self["title"].value() or "")}
        if self.attached is not None and self.wants_attached:
            values["with_cluster"] = "on"
        for section in self.sections:
            values |= section.link()
        return {name: value for name, value in values.items() if value}

    @cached_property
    def as_sent(self) -> "LaunchForm":
        """The form bound to its own initial values, as a browser would send them unchanged."""
        data = {name: self.chosen(name) for name in _NOT_OFFERED}
        data |= {name: self[name].value() or "" for name in ("title", "token")}
        data |= {"with_cluster": "on"} if self.wants_attached else {}
        for section in filter(None, (self.own, self.attached)):
            data |= section.as_sent()
        form = LaunchForm(data, user=self.user, kind=self.kind, pools=self.pools, offers=self.offers)
        form.suggested_name = self.suggested_name
        return form
