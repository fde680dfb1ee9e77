"""The demonstration page: the size of the embedded cluster's population, and the failures that can be caused; pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from grid.wording import plural

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
        "A pool is out of stock",
        "Ten workers of a pool are replaced, and for two minutes nothing new gets a node there.",
        "Infrastructure: these pods wait, and their pages say that no node has room and that none can be added.",
        "pool",
    ),
    FailureButton(
        "bad-image",
        "A bad image",
        "Ten workers are replaced by ones with an image that is in no registry, for two minutes.",
        "Infrastructure: these pods cannot pull their image; a pod's page says what to do.",
    ),
    FailureButton(
        "out-of-memory",
        "Out of memory",
        "Ten workers use more memory than they may, are killed and start again.",
        "Infrastructure: their restarts are counted; a pod's page says that its memory did not suffice.",
    ),
    FailureButton(
        "crash-loop",
        "A crash loop",
        "Ten workers crash five times, each time with a longer wait before the next start.",
        "Infrastructure: these pods wait to be started again; a pod's page names the exit code.",
    ),
    FailureButton(
        "node-lost",
        "A node is lost",
        "One node falls silent. After 40 seconds its pods are replaced elsewhere, and it is replaced.",
        "Infrastructure: the node is lost, its pods are not ready; then both are replaced.",
    ),
    FailureButton(
        "taint",
        "A node in maintenance",
        "One node gets a taint that no pod tolerates; its pods move. After two minutes it is back.",
        "Infrastructure: the node's page shows the taint, and its pods go.",
    ),
    FailureButton(
        "pause",
        "The API server is stuck",
        "It answers nothing for the chosen time; connections stay open.",
        "Every live page says how far behind it is, and catches up by itself.",
        "seconds",
        needs_pods=False,
    ),
    FailureButton(
        "restart",
        "The API server restarts",
        "All connections end, none is accepted for the chosen time, and the watch history is lost.",
        "Every live page says that the cluster cannot be reached, and then is right again without a reload.",
        "seconds",
        needs_pods=False,
    ),
    FailureButton(
        "history-dropped",
        "The watch history is dropped",
        "All watches end and cannot be resumed, so every cache has to read everything again.",
        "Every live page stays as it is; nothing is missing and nothing is shown twice.",
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
        now=f"Now {_many(state, 'nodes')} and {_many(state, 'pods')}; {_many(state, 'changes')} since the start.",
        is_empty=not state["pods"],
        out_of_stock=", ".join(state["outOfStock"]),
        pools=state["pools"],
        sliders=(
            Slider(
                "pods",
                "Pods",
                "Nodes are added above 30 pods for each node.",
                wanted["pods"],
                MOST_PODS,
                _step(wanted["pods"]),
            ),
            Slider(
                "churn",
                "Changes a second",
                "Workers that come and go, jobs that end, failures.",
                ceil(wanted["churn"]),
                MOST_CHURN,
                1,
            ),
        ),
    )


def _step(pods: int) -> int:
    """Return the slider's step; 1 for an odd number of pods, because a browser would round it and submit another number unseen."""
    return 1 if pods % _PODS_STEP else _PODS_STEP


def _many(state: Mapping[str, Any], what: str) -> str:
    return plural(state[what], what.removesuffix("s"))
