"""What runs of a job ran with, measured and left as results: as facts, charts and JSON, and how those of two runs differ; pure.

In the record, secrets and the environment's variables have names and no values; what the job's owner typed is there.
"""

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import cycle, islice
from typing import Any
from urllib.parse import urlencode

import msgspec

from dashboard.files.viewmodels.files import SHOWN_IMAGE_BYTES, image_type
from dashboard.shell.viewmodels import charts as drawing
from dashboard.usage.viewmodels.usage import price_words
from grid.core.quantity import format_bytes
from grid.core.translation import gettext as _, ngettext
from grid.core.wording import plural
from grid.executions.spec import ExecutionSpec, JobSpec, TierSpec
from grid.files.repositories import TreeEntry
from grid.models import Execution

NOT_LAUNCHED: Mapping[str, str] = dict.fromkeys(
    (_("Image"), _("CPU"), _("Memory"), _("Node pool")), _("not launched yet")
)


_FOR_PODS = frozenset({"tolerations", "extra_labels", "extra_annotations"})  # of a tier; the record leaves them out


@dataclass(frozen=True, slots=True)
class RanWith:
    """What was frozen at the launch, and the row with what the kubelet told of it since."""

    spec: ExecutionSpec
    execution: Execution


def launch_facts(ran: RanWith) -> dict[str, str]:
    """Return what was asked of the cluster, and where it ran, without what the run itself was asked for."""
    environment = ran.spec.environment
    facts = {
        _("Environment's revision"): str(environment.revision or ""),
        _("Image"): environment.image,
        _("Image that ran"): ran.execution.image_id,
    }
    if not (ran.spec.job and ran.spec.job.command):
        facts[_("Environment's command")] = shlex.join(environment.command)
    facts |= _size(ran.spec.tier)
    if sidecars := ran.spec.price_beside:
        facts[_("Price beside the tier's")] = _("{price}, for nginx and the executor", price=price_words(sidecars))
    facts |= {_("Environment's variable {name}", name=name): _("set") for name in sorted(environment.variables)}
    for secret in ran.spec.secrets:
        facts[_("Secret {name}", name=secret.name)] = _("a file") if secret.is_file else _("a variable")
    facts[_("Node")] = ran.execution.node_name
    return {name: text for name, text in facts.items() if text}


def _size(tier: TierSpec) -> dict[str, str]:
    return {
        _("CPU"): _with_limit(tier.cores, tier.cores_limit),
        _("Memory"): _with_limit(tier.memory, tier.memory_limit),
        _("GPUs"): f"{tier.gpus} {tier.gpu_resource}" if tier.gpus else "",
        _("Shared memory"): tier.shared_memory,
        _("Scratch storage"): tier.ephemeral_storage,
        _("Node pool"): tier.node_pool,
        _("Price"): price_words(Decimal(tier.cost_per_hour)),
    }


def _with_limit(request: str, limit: str) -> str:
    return request if limit == request else _("{request}, at most {limit}", request=request, limit=limit)


def changed_size(ran: RanWith, now: TierSpec) -> list[str]:
    """Return sentences about what the tier gives now in place of what it gave then."""
    then, today = _size(ran.spec.tier), _size(now)
    return [
        _("{name}: {today} now, {then} then.", name=name, today=today[name] or _("none"), then=then[name] or _("none"))
        for name in then
        if then[name] != today[name]
    ]


def record_json(ran: RanWith) -> dict[str, Any]:
    spec, job, execution = ran.spec, ran.spec.job or JobSpec(job="", run=0), ran.execution
    tier, environment = msgspec.to_builtins(spec.tier), spec.environment
    return {
        "execution": spec.id,
        "job": job.job,
        "run": job.run,
        "attempt": job.attempt,
        "project": spec.project.id,
        "owner": spec.owner,
        "environment": {"id": environment.id, "name": environment.name, "revision": environment.revision or None},
        "image": environment.image,
        "image_id": execution.image_id,
        "command": job.command or list(environment.command),
        "folder": job.folder,
        "variables": job.variables,
        "parameters": job.parameters,
        "environment_variables": sorted(environment.variables),
        "secrets": [secret.name for secret in spec.secrets],
        "page_port": job.page_port,
        "timeout_seconds": job.timeout_seconds,
        "tier": {name: value for name, value in tier.items() if name not in _FOR_PODS},
        "node": execution.node_name,
        **{name: getattr(execution, name) for name in ("state", "exit_code", "requested_at", "started_at", "ended_at")},
    }


MOST_CHARTS = 12
MOST_RUNS = 8
LOWEST, HIGHEST = "lowest", "highest"
ORDERS = {"": _("Newest first"), LOWEST: _("Lowest first"), HIGHEST: _("Highest first")}  # of a sweep's runs
_EXACT = 1e15  # up to here a double holds each whole number
_LOOKS = (
    ("--accent", drawing.SOLID),
    ("--chart-cpu", drawing.DASHES),
    ("--chart-memory", drawing.DOTS),
    ("--chart-ready", drawing.LONG_DASHES),
    ("--bad", drawing.DASH_DOT),
)


@dataclass(frozen=True, slots=True)
class MetricPoints:
    """One metric of a run; `points` are the steps and values that are kept of `count`."""

    name: str
    count: int
    last: float
    lowest: float
    highest: float
    points: Sequence[tuple[float, float]] = ()


@dataclass(frozen=True, slots=True)
class RunMetrics:
    """What an execution has measured, in the order in which its metrics turned up; `refused` and `unkept` count values without a place."""

    metrics: Sequence[MetricPoints] = ()
    refused: int = 0
    unkept: int = 0

    @property
    def rows(self) -> Sequence[Sequence[str]]:
        """The rows of the table: name, last, lowest and highest value, and count."""
        return [
            (metric.name, *map(number_words, (metric.last, metric.lowest, metric.highest)), f"{metric.count:,}")
            for metric in self.metrics
        ]

    @property
    def notes(self) -> Iterator[str]:
        """Sentences about what is not shown."""
        if self.refused:
            yield ngettext(
                "{count:,} value was no finite number, such as NaN, or had no usable name.",
                "{count:,} values were no finite number, such as NaN, or had no usable name.",
                self.refused,
            )
        if self.unkept:
            values = plural(self.unkept, "value", "values")
            yield _(
                "Only {metrics} metrics are kept; {values} of others are not.", metrics=len(self.metrics), values=values
            )
        if len(self.metrics) > MOST_CHARTS:
            yield _("The first {count} metrics are drawn.", count=MOST_CHARTS)

    @property
    def titles(self) -> dict[str, str]:
        return chart_titles([self.metrics])


def number_words(value: float) -> str:
    """Return a number with at most five significant digits, whole ones in full."""
    return f"{int(value):,}" if value % 1 == 0 and abs(value) < _EXACT else f"{value:.5g}"


def chart_titles(runs: Iterable[Sequence[MetricPoints]]) -> dict[str, str]:
    """Return the names of the charts and their titles. What a program calls a metric is no name of a chart."""
    names = dict.fromkeys(metric.name for metrics in runs for metric in metrics)
    return {f"metric-{number}": name for number, name in zip(range(MOST_CHARTS), names, strict=False)}


def charts(runs: Mapping[str, Sequence[MetricPoints]]) -> dict[str, Any]:
    """Return a chart of each metric, with a line for each of the runs, which are given by their titles."""
    titles = chart_titles(runs.values())
    shown = {key: {"title": title, **_chart(title, runs)} for key, title in titles.items()}
    return {"steps": True, "times": [], "charts": shown}


def _chart(name: str, runs: Mapping[str, Sequence[MetricPoints]]) -> dict[str, Any]:
    lines = {
        title: dict(metric.points) for title, metrics in runs.items() for metric in metrics if metric.name == name
    }  # of several values at one step the last counts
    steps = sorted({step for line in lines.values() for step in line})
    looks = dict(zip(runs, cycle(_LOOKS), strict=False))
    drawn = [
        drawing.ChartLine(
            f"run-{number}",
            _("value") if len(runs) == 1 else title,
            [line.get(step) for step in steps],
            "value",
            *looks[title],
        )
        for number, (title, line) in enumerate(lines.items())
    ]
    return {"times": steps, **drawing.chart_values([drawing.ChartScale("value", 0, is_free=True)], drawn)}


SHOWN_FILES = 500
COMPARED_FILES = 20  # whose differences are shown line by line
COMPARED_BYTES = 256 * 2**10  # of each of the two
DIFFERENCE_BYTES = 32 * 2**10


@dataclass(frozen=True, slots=True)
class ResultFile:
    """`query` is the part of its page's URL behind the question mark; "" where it cannot be opened."""

    path: str
    size: str
    query: str


@dataclass(frozen=True, slots=True)
class Results:
    files: Sequence[ResultFile]
    left_out: int
    image: ResultFile | None  # the first that can be drawn


def results(commit: str, entries: Sequence[TreeEntry]) -> Results:
    images = (entry for entry in entries if image_type(entry.name) and not entry.is_link)
    drawn = (_row(commit, entry) for entry in images if 0 < entry.size <= SHOWN_IMAGE_BYTES)
    rows = [_row(commit, entry) for entry in entries[:SHOWN_FILES]]
    return Results(rows, max(0, len(entries) - SHOWN_FILES), next(drawn, None))


def _row(commit: str, entry: TreeEntry) -> ResultFile:
    query = urlencode({"at": commit, "path": entry.name}) if entry.name else ""
    return ResultFile(entry.shown, _("link") if entry.is_link else format_bytes(entry.size), query)


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file that both runs have, with other content; `text` is what differs, and `note` why that is not shown, or not whole."""

    first: ResultFile
    second: ResultFile
    text: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class ResultsComparison:
    only_first: Sequence[ResultFile]
    only_second: Sequence[ResultFile]
    changed: Sequence[ChangedFile]
    same: int
    left_out: int


@dataclass(frozen=True, slots=True)
class RunResults:
    """The commit with the results of one run, and the files in it."""

    commit: str
    entries: Sequence[TreeEntry]

    @property
    def by_path(self) -> dict[str, TreeEntry]:
        return {entry.shown: entry for entry in self.entries}


def compared_results(
    first: RunResults, second: RunResults, read: Callable[[TreeEntry, TreeEntry], bytes]
) -> ResultsComparison:
    """Return the comparison; `read` returns the beginning of what differs between two files, of which few and small ones are read."""
    before, after = first.by_path, second.by_path
    only_first = [_row(first.commit, entry) for path, entry in before.items() if path not in after]
    only_second = [_row(second.commit, entry) for path, entry in after.items() if path not in before]
    both = [(entry, after[path]) for path, entry in before.items() if path in after]
    pairs = [pair for pair in both if pair[0].id != pair[1].id]
    small = (pair for pair in pairs if all(each.size <= COMPARED_BYTES and not each.is_module for each in pair))
    compared = list(islice(small, COMPARED_FILES))
    changed = [
        _changed(_row(first.commit, pair[0]), _row(second.commit, pair[1]), read(*pair) if pair in compared else None)
        for pair in pairs
    ]
    return ResultsComparison(
        only_first[:SHOWN_FILES],
        only_second[:SHOWN_FILES],
        changed[:SHOWN_FILES],
        same=len(both) - len(changed),
        left_out=sum(max(0, len(files) - SHOWN_FILES) for files in (only_first, only_second, changed)),
    )


def _changed(first: ResultFile, second: ResultFile, difference: bytes | None) -> ChangedFile:
    if difference is None:
        return ChangedFile(first, second, note=_("Too large, or too many, to be compared line by line."))
    if not difference.startswith(b"@@"):
        return ChangedFile(first, second, note=_("Not text."))
    note = _("Cut here; open both files for the rest.") if len(difference) >= DIFFERENCE_BYTES - 1000 else ""
    return ChangedFile(first, second, difference.decode(errors="replace"), note)
