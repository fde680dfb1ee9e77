"""Prometheus' text format, for what the embedded cluster serves in the names of a real one; pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from grid.core.regexes import RepeatedExpression

_CAMEL, _NOT_IN_A_NAME = RepeatedExpression(r"([a-z0-9])([A-Z])"), RepeatedExpression(r"[^a-z0-9_]")
CONTENT_TYPE = "text/plain; version=0.0.4"

Sample = tuple[Mapping[str, str], float]


@dataclass(frozen=True, slots=True)
class Family:
    """The samples of one metric. `kind` is counter or gauge; one without samples is left out."""

    name: str
    kind: str
    help: str
    samples: Iterable[Sample]


def text_of(families: Iterable[Family]) -> str:
    """Return the families as a Prometheus reads them."""
    lines: list[str] = []
    for family in families:
        samples = [f"{family.name}{_labels(labels)} {value!r}" for labels, value in family.samples]
        if samples:
            lines += [f"# HELP {family.name} {family.help}", f"# TYPE {family.name} {family.kind}", *samples]
    return "\n".join(lines) + "\n"


def label_name(text: str, *, prefix: str = "") -> str:
    """Return a label's name as kube-state-metrics makes it: snake case, and "_" for what Prometheus does not take."""
    snake = _CAMEL.sub(r"\1_\2", text).lower()
    return prefix + _NOT_IN_A_NAME.sub("_", snake)


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
