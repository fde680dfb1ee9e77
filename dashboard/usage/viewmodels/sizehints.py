"""The right-size hint: what the last runs used, a smaller tier that would do, and a larger one after running out of memory; pure."""

from dataclasses import dataclass

from dashboard.shell.viewmodels.format import cores_words, price_number
from dashboard.shell.viewmodels.live import Fragment, ViewModel
from grid.core.quantity import format_bytes, format_cores
from grid.core.translation import gettext as _
from grid.core.wording import CURRENCY
from grid.tiers.rightsize import SizedTier, SmallerTier

MEASURED = _("Use is measured every 15 to 60 seconds, so a short peak is missed.")
_NEAR_PERCENT = 90  # of its memory limit: the peak that was measured shows that it ran out


@dataclass(frozen=True, slots=True)
class SizeFacts:
    """What is known of the size of an execution that has ended. Its peaks are 0 when nothing was measured."""

    memory_peak: int
    cpu_peak: int
    cpu_mean: int
    memory_limit: int
    cpu_limit: int
    ran_out_of_memory: bool = False
    current: SizedTier | None = None
    smaller: SmallerTier | None = None
    larger: SizedTier | None = None


class SizeHint(ViewModel, frozen=True, gc=False):
    """The hint on the launch form; its button chooses the tier."""

    tier_id: str
    tier_name: str
    sentence: str


class SizeNote(ViewModel, frozen=True, gc=False):
    """The note on the page of an execution that has ended. `tier_id` is "" when no tier can be chosen; `resumes` is the workspace to resume
    on it, "" when it is launched again."""

    sentence: str = ""
    measured: str = ""
    execution_id: str = ""
    resumes: str = ""
    tier_id: str = ""
    action: str = ""
    is_problem: bool = False


def launch_hint(smaller: SmallerTier, current: SizedTier, *, runs: str) -> SizeHint:
    """Return the hint; `runs` says which runs, such as "of “train”"."""
    which = _("Your last {count} runs {which}", count=smaller.runs, which=runs)
    return SizeHint(smaller.tier.id, smaller.tier.name, _smaller_sentence(smaller, current, which))


def size_notes(facts: SizeFacts | None, *, execution_id: str, workspace_id: str, is_owner: bool) -> list[Fragment]:
    """Return the note's two places on the page: a problem stands by the status, what was used by the charts; the other one is empty."""
    note = size_note(facts, execution_id=execution_id, workspace_id=workspace_id, is_owner=is_owner)
    by_status, by_charts = (note, SizeNote()) if note.is_problem else (SizeNote(), note)
    template = "usage/fragments/size_note.html"
    return [Fragment("size", template, by_status), Fragment("peak", template, by_charts)]


def size_note(facts: SizeFacts | None, *, execution_id: str, workspace_id: str, is_owner: bool) -> SizeNote:
    """Return the note, empty when nothing is known; only the owner gets the link to launch again."""
    if facts is not None and facts.ran_out_of_memory:
        return _out_of_memory(facts, execution_id, workspace_id, is_owner=is_owner)
    if facts is not None and facts.memory_peak:
        return _used(facts, execution_id, workspace_id, is_owner=is_owner)
    return SizeNote()


def _out_of_memory(facts: SizeFacts, execution_id: str, workspace_id: str, *, is_owner: bool) -> SizeNote:
    limit, peak = format_bytes(facts.memory_limit), format_bytes(facts.memory_peak)
    sentence = _("It was stopped at its memory limit of {limit}.", limit=limit)
    if facts.memory_peak * 100 >= _NEAR_PERCENT * facts.memory_limit:
        sentence = _("It used {peak} of its memory limit of {limit}, and was stopped there.", peak=peak, limit=limit)
    elif facts.memory_peak:
        sentence += " " + _(
            "The most that was measured before is {peak}, so its use rose faster than it is measured.", peak=peak
        )
    larger = facts.larger
    if larger is None:
        sentence += " " + _(
            "No tier that is offered for this has more memory. Ask an admin for a larger one, or let the program use less."
        )
    if larger is None or not is_owner:
        return SizeNote(sentence=sentence, is_problem=True)
    action = _again(workspace_id, f"{larger.name} ({format_bytes(larger.memory_limit)})")
    return SizeNote(sentence, "", execution_id, workspace_id, larger.id, action, is_problem=True)


def _used(facts: SizeFacts, execution_id: str, workspace_id: str, *, is_owner: bool) -> SizeNote:
    sentence = _(
        "It used at most {memory_peak} and {cpu_peak} of {cpu_limit} ({cpu_mean} on average).",
        memory_peak=_of(format_bytes(facts.memory_peak), format_bytes(facts.memory_limit)),
        cpu_peak=format_cores(facts.cpu_peak),
        cpu_limit=cores_words(f"{facts.cpu_limit}m"),
        cpu_mean=format_cores(facts.cpu_mean),
    )
    if facts.smaller is None or facts.current is None or not is_owner:
        return SizeNote(sentence=sentence, measured=MEASURED)
    smaller = facts.smaller
    hint = _smaller_sentence(smaller, facts.current, _("The last {count} runs like this", count=smaller.runs))
    action = _again(workspace_id, smaller.tier.name)
    return SizeNote(f"{sentence} {hint}", MEASURED, execution_id, workspace_id, smaller.tier.id, action)


def _smaller_sentence(smaller: SmallerTier, current: SizedTier, runs: str) -> str:
    facts = {
        "runs": runs,
        "memory": _of(format_bytes(smaller.memory_peak), format_bytes(current.memory)),
        "cores": _("{used} of {whole}", used=format_cores(smaller.cpu_peak), whole=cores_words(f"{current.cpu}m")),
        "tier": smaller.tier.name,
    }
    if not smaller.saves:
        return _("{runs} peaked at {memory} and {cores}: {tier} is large enough.", **facts)
    facts |= {"amount": f"{CURRENCY}{price_number(smaller.saves)}"}
    return _("{runs} peaked at {memory} and {cores}: {tier} is large enough, and saves {amount} an hour.", **facts)


def _of(used: str, whole: str) -> str:
    """Return "3.1 of 16 GiB", or "300 MiB of 16 GiB" where the units differ."""
    number, _unused, unit = used.partition(" ")
    return _("{used} of {whole}", used=number if whole.endswith(f" {unit}") else used, whole=whole)


def _again(workspace_id: str, tier: str) -> str:
    return _("Resume it on {tier}", tier=tier) if workspace_id else _("Launch again on {tier}", tier=tier)
