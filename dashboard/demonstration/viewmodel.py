"""The demonstration page: the size of the embedded cluster's population, and the failures that can be caused; pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from grid.core.translation import gettext as _
from grid.core.wording import plural

MOST_PODS, MOST_CHURN = 150_000, 1000  # the embedded cluster's limits
_PODS_STEP = 100


@dataclass(frozen=True, slots=True)
class Slider:
    name: str
    title: str
    meaning: str
    value: int
    most: int
    step: int

    @property
    def shown(self) -> str:
        return f"{self.value:,}"


@dataclass(frozen=True, slots=True)
class FailureButton:
    """A button that causes a failure. `seen` says where it shows, `choice` names a further field; some failures need pods."""

    name: str
    title: str
    meaning: str
    seen: str
    choice: str = ""
    needs_pods: bool = True


FAILURES: Sequence[FailureButton] = (
    FailureButton(
        "stock-out",
        _("A pool is out of stock"),
        _("Ten workers of a pool are replaced, and for two minutes nothing new gets a node there."),
        _("Infrastructure: these pods wait, and their pages say that no node has room and that none can be added."),
        "pool",
    ),
    FailureButton(
        "bad-image",
        _("A bad image"),
        _("Ten workers are replaced by ones with an image that is in no registry, for two minutes."),
        _("Infrastructure: these pods cannot pull their image; a pod's page says what to do."),
    ),
    FailureButton(
        "out-of-memory",
        _("Out of memory"),
        _("Ten workers use more memory than they may, are killed and start again."),
        _("Infrastructure: their restarts are counted; a pod's page says that its memory did not suffice."),
    ),
    FailureButton(
        "crash-loop",
        _("A crash loop"),
        _("Ten workers crash five times, each time with a longer wait before the next start."),
        _("Infrastructure: these pods wait to be started again; a pod's page names the exit code."),
    ),
    FailureButton(
        "node-lost",
        _("A node is lost"),
        _("One node falls silent. After 40 seconds its pods are replaced elsewhere, and it is replaced."),
        _("Infrastructure: the node is lost, its pods are not ready; then both are replaced."),
    ),
    FailureButton(
        "taint",
        _("A node in maintenance"),
        _("One node gets a taint that no pod tolerates; its pods move. After two minutes it is back."),
        _("Infrastructure: the node's page shows the taint, and its pods go."),
    ),
    FailureButton(
        "pause",
        _("The API server is stuck"),
        _("It answers nothing for the chosen time; connections stay open."),
        _("Every live page says how far behind it is, and catches up by itself."),
        "seconds",
        needs_pods=False,
    ),
    FailureButton(
        "restart",
        _("The API server restarts"),
        _("All connections end, none is accepted for the chosen time, and the watch history is lost."),
        _("Every live page says that the cluster cannot be reached, and then is right again without a reload."),
        "seconds",
        needs_pods=False,
    ),
    FailureButton(
        "history-dropped",
        _("The watch history is dropped"),
        _("All watches end and cannot be resumed, so every cache has to read everything again."),
        _("Every live page stays as it is; nothing is missing and nothing is shown twice."),
        needs_pods=False,
    ),
)


@dataclass(frozen=True, slots=True)
class DemonstrationView:
    now: str
    is_empty: bool
    out_of_stock: str
    pools: Sequence[str]
    sliders: Sequence[Slider]
    failures: Sequence[FailureButton] = FAILURES


def demonstration_view(state: Mapping[str, Any]) -> DemonstrationView:
    """Return the page's view of the embedded cluster's population, as its API reports it."""
    wanted = state["wanted"]
    return DemonstrationView(
        now=_(
            "Now {nodes} and {pods}; {changes} since the start.",
            nodes=plural(state["nodes"], "node", "nodes"),
            pods=plural(state["pods"], "pod", "pods"),
            changes=plural(state["changes"], "change", "changes"),
        ),
        is_empty=not state["pods"],
        out_of_stock=", ".join(state["outOfStock"]),
        pools=state["pools"],
        sliders=(
            Slider(
                "pods",
                _("Pods"),
                _("Nodes are added above 30 pods for each node."),
                wanted["pods"],
                MOST_PODS,
                _step(wanted["pods"]),
            ),
            Slider(
                "churn",
                _("Changes a second"),
                _("Workers that come and go, jobs that end, failures."),
                ceil(wanted["churn"]),
                MOST_CHURN,
                1,
            ),
        ),
    )


def _step(pods: int) -> int:
    """Return the slider's step; 1 for an odd number of pods, because a browser would round it and submit another number unseen."""
    return 1 if pods % _PODS_STEP else _PODS_STEP
