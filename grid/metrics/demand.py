"""The number of workers that a cluster's framework would like to have, on its way from the controller to the autoscaler.

The controller writes it as an annotation on the HorizontalPodAutoscaler; the web processes read it there, see `grid.runtime.demand`.
"""

from datetime import datetime
from typing import Annotated

import msgspec

METRIC = "compute_grid_wanted_workers"
EXECUTION_LABEL = "execution-id"  # a label of the metric, with the cluster's execution id


class Demand(msgspec.Struct, frozen=True):
    """The number of workers that a framework would like to have, and when it said so."""

    wanted: Annotated[int, msgspec.Meta(ge=0, le=2**31)]  # as far as Kubernetes counts replicas
    at: Annotated[datetime, msgspec.Meta(tz=True)]


def write_demand(demand: Demand) -> str:
    """Return the demand as the annotation's text."""
    return msgspec.json.encode(demand).decode()


def read_demand(text: str) -> Demand | None:
    """Parse the annotation's text; None when it is no demand."""
    try:
        return msgspec.json.decode(text, type=Demand)
    except (msgspec.DecodeError, UnicodeError):
        return None
