"""How an execution started: its phases as bars one after the other, each with the usual time beside it; pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dashboard.shell.viewmodels.format import span
from dashboard.shell.viewmodels.live import Fragment
from grid.core.translation import gettext as _
from grid.core.wording import listed
from grid.diagnosis.startup import Phase, StartPhases

# Fewer starts than these say nothing about what is usual.
ENOUGH = 5
_SLOW_FACTOR, _SLOW_SECONDS = 2.0, 10.0
_INSTANT_SECONDS = 0.05  # less is shown as 0
PHASE_WORDS = {
    Phase.QUEUED: _("Waiting for a slot"),
    Phase.CLUSTER_WAIT: _("Waiting for its cluster"),
    Phase.CREATING: _("Creating its objects"),
    Phase.NODE_WAIT: _("Waiting for a node"),
    Phase.SCHEDULING: _("Scheduling"),
    Phase.VOLUMES: _("Volumes and network"),
    Phase.PULLING: _("Image pull"),
    Phase.SETUP: _("Init containers"),
    Phase.STARTING: _("Starting the program"),
    Phase.ANSWERING: _("First answer"),
    Phase.FIRST_WORKER: _("First worker"),
}


@dataclass(frozen=True, slots=True)
class StartMeasures:
    """The seconds of a start by phase; `merged_phases` cannot be told apart and took `merged`; it is, or was cut off, in `open_phase`."""

    total: float
    seconds: Mapping[Phase, float]
    merged: float = 0.0
    merged_phases: tuple[Phase, ...] = ()
    ran: bool = True
    open_phase: Phase | None = None
    node_started: bool | None = None
    node_decision: float | None = None
    node_creation: float | None = None
    node_joining: float | None = None
    image_cached: bool | None = None
    image_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class UsualStart:
    """The medians of the newest starts of the same tier and environment."""

    count: int = 0
    total: float | None = None
    seconds: Mapping[Phase, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StartBar:
    """One line: lengths in percent of the whole."""

    word: str
    took: str
    usual: str
    note: str
    left: float
    width: float
    is_slow: bool
    is_open: bool


@dataclass(frozen=True, slots=True)
class Waterfall:
    sentence: str
    basis: str
    bars: tuple[StartBar, ...]
    instant: str = ""  # the phases that took no time, in one line


def of_phases(phases: StartPhases) -> StartMeasures:
    """Return the measures of a start that is under way."""
    names, together = phases.merged
    last = phases.spans[-1] if phases.spans else None
    return StartMeasures(
        total=phases.total,
        seconds=phases.seconds,
        merged=together,
        merged_phases=names,
        ran=False,
        open_phase=last.phases[0] if last is not None and last.is_open else None,
        node_started=phases.node.is_new,
        node_decision=phases.node.decision,
        node_creation=phases.node.creation,
        node_joining=phases.node.joining,
        image_cached=phases.image_cached,
        image_bytes=phases.image_bytes,
    )


def waterfall(start: StartMeasures | None, usual: UsualStart, *, is_final: bool) -> Fragment:
    """Return the picture; empty while nothing was measured."""
    shown = Waterfall("", "", ())
    if start is not None:
        basis = _("“Usually” is the median of the newest {count} starts of this tier and environment.")
        basis = basis.format(count=usual.count) if usual.count >= ENOUGH else ""
        shown = Waterfall(
            _sentence(start, usual, is_final=is_final), basis, tuple(_bars(start, usual)), _instant(start)
        )
    return Fragment("startup", "starts/fragments/startup.html", shown)


def main_cause(start: StartMeasures, usual: UsualStart) -> str:
    """Return what made a start longer than usual, or took most of it: "Image pull 48 s (1.8 GB, the image was not on the node)"."""

    def excess(line: tuple[Sequence[Phase], float]) -> float:
        usually = sum(usual.seconds.get(phase, 0.0) for phase in line[0]) if usual.count >= ENOUGH else 0.0
        return line[1] - usually

    phases, seconds = max(_lines(start), key=excess, default=((), 0.0))
    return f"{_word(phases)} {_part_text(phases, seconds, start)}" if phases else ""


def start_text(start: StartMeasures) -> str:
    """Return a start as one line: "Start-up: 50 s: waiting for a slot 2.0 s, image pull 48 s (1.8 GB, the image was not on the node)."."""
    parts = [
        f"{_lowered(_word(phases))} {_part_text(phases, seconds, start)}"
        for phases, seconds in _lines(start)
        if seconds > 0 or Phase.PULLING in phases
    ]
    times = f"{seconds_words(start.total)}: {', '.join(parts)}" if parts else seconds_words(start.total)
    words = _("Start-up: {times}.") if start.ran else _("Start-up: {times}, then it ended before it ran.")
    return words.format(times=times)


def _part_text(phases: Sequence[Phase], seconds: float, start: StartMeasures) -> str:
    notes = []
    if Phase.NODE_WAIT in phases and seconds > 0 and start.node_started is not None:
        notes.append(_("a new node was started") if start.node_started else _("no node had room at first"))
    if Phase.PULLING in phases and start.image_cached is not None:
        if start.image_cached:
            notes.append(_("the image was on the node"))
        elif start.image_bytes:
            notes.append(_("{size}, the image was not on the node", size=_size(start.image_bytes)))
        else:
            notes.append(_("an image was not on the node"))
    return f"{seconds_words(seconds)} ({'; '.join(notes)})" if notes else seconds_words(seconds)


def _sentence(start: StartMeasures, usual: UsualStart, *, is_final: bool) -> str:
    took, usually = seconds_words(start.total), ""
    if usual.count >= ENOUGH and usual.total is not None:
        usually = " " + _("Usually {time}.", time=seconds_words(usual.total))
    if start.ran:
        return _("Started in {time}.", time=took) + usually
    if is_final:
        return _("Ended after {time}, before it ran.", time=took)
    return _("Starting for {time}.", time=took) + usually


def _bars(start: StartMeasures, usual: UsualStart) -> Iterator[StartBar]:
    at = 0.0
    for phases, seconds in _lines(start):
        if _is_instant(phases, seconds, start):
            continue
        known = [usual.seconds[phase] for phase in phases if phase in usual.seconds]
        usually = sum(known) if usual.count >= ENOUGH and len(known) == len(phases) else None
        is_slow = usually is not None and seconds > max(_SLOW_FACTOR * usually, usually + _SLOW_SECONDS)
        width = 100 * seconds / start.total if start.total else 0.0
        yield StartBar(
            word=_word(phases),
            took=seconds_words(seconds),
            usual="" if usually is None else seconds_words(usually),
            note=" ".join(note for phase in phases if (note := _note(phase, start, seconds))),
            left=round(at, 2),
            width=round(width, 2),
            is_slow=is_slow,
            is_open=start.open_phase in phases,
        )
        at += width


def _is_instant(phases: Sequence[Phase], seconds: float, start: StartMeasures) -> bool:
    return seconds < _INSTANT_SECONDS and start.open_phase not in phases


def _instant(start: StartMeasures) -> str:
    """Return "No time: scheduling and image pull. The image was on the node."."""
    lines = [(phases, seconds) for phases, seconds in _lines(start) if _is_instant(phases, seconds, start)]
    if not lines:
        return ""
    notes = [note for phases, seconds in lines for phase in phases if (note := _note(phase, start, seconds))]
    names = listed(_lowered(PHASE_WORDS[phase]) for phases, _seconds in lines for phase in phases)
    return " ".join([_("No time: {phases}.", phases=names), *notes])


def _word(phases: Sequence[Phase]) -> str:
    words = (PHASE_WORDS[phase] for phase in phases)
    return listed(word if not place else _lowered(word) for place, word in enumerate(words))


def _lines(start: StartMeasures) -> Iterator[tuple[Sequence[Phase], float]]:
    """Yield the phases in order; those that could not be told apart are one line, at the place of the first."""
    for phase in Phase:
        if phase in start.merged_phases:
            if phase is start.merged_phases[0]:
                yield start.merged_phases, start.merged
        elif phase in start.seconds:
            yield (phase,), start.seconds[phase]


def _note(phase: Phase, start: StartMeasures, seconds: float) -> str:
    if phase is Phase.NODE_WAIT and seconds > 0:
        if start.node_started is False:
            return _("No node had room at first; an existing node took it later.")
        return _node_note(start) if start.node_started else ""
    if phase is not Phase.PULLING or start.image_cached is None:
        return ""
    if start.image_cached:
        return _("The image was on the node.")
    if start.image_bytes and not start.merged_phases:
        size, time = _size(start.image_bytes), seconds_words(seconds)
        return _("The image was not on the node: {size} in {time}.", size=size, time=time)
    return _("An image was not on the node.")


def _node_note(start: StartMeasures) -> str:
    parts = [
        message.format(time=seconds_words(seconds))
        for message, seconds in (
            (_("until it was requested {time}"), start.node_decision),
            (_("until it joined {time}"), start.node_creation),
            (_("until it was ready {time}"), start.node_joining),
        )
        if seconds is not None
    ]
    return _("A new node was started: {parts}.", parts=", ".join(parts)) if parts else _("A new node was started.")


def seconds_words(seconds: float) -> str:
    """Return a short time with a tenth below ten seconds: "0 s", "0.4 s", "12 s", "3 min 5 s"."""
    return f"{seconds:.1f} s" if 0 < seconds < 10 else span(seconds)


def _size(size: int) -> str:
    """Return a size as registries give it: "1.8 GB", "48 MB"."""
    if size < 1e6:
        return _("less than 1 MB")
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{round(size / 1e6)} MB"


def _lowered(word: str) -> str:
    return word[0].lower() + word[1:]
