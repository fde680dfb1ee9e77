"""The sections that kinds of executions add to the launch form. A section parses; the rules of its kind decide what may be launched."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from django import forms

from dashboard.shell.viewmodels.format import cores_words, memory_words
from dashboard.usage.viewmodels.usage import price_words
from grid.core.errors import Problem
from grid.core.wording import plural
from grid.diagnosis.launchfit import Pools
from grid.executions.launchrequest import LaunchRequest
from grid.models import Environment, Execution, HardwareTier, User


@dataclass(frozen=True, slots=True)
class SectionPlace:
    """For what a section is made. `slots` are free; `like` is a section of the same user and kind, whose offers need not be read again."""

    user: User
    initial: Mapping[str, Any]
    environment: Environment | None
    slots: int
    is_attached: bool
    like: "LaunchSection | None"


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

    def not_offered(self, asked: Mapping[str, Any]) -> list[str]:
        """Return a sentence for each field that does not offer what was asked for."""
        return []

    def main_tiers(self) -> tuple[str, Sequence[HardwareTier]] | None:
        """Return the field of the tier that decides whether it fits, and what it offers; None where that is the form's own."""
        return None

    def launch(self, request: LaunchRequest, *, id: str, now: datetime, pools: Pools | None) -> str:
        """Launch in a way of its own and return the address of what was made; "" where the usual way is right. Raise Rejected."""
        return ""

    def add_problems(self, problems: Iterable[Problem]) -> list[Problem]:
        """Add each problem at its field; return those that are not about a field of this section."""
        problems = list(problems)
        for problem in problems:
            if problem.path in self.fields:
                self.add_error(problem.path, problem.message)
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
