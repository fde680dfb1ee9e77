"""The frameworks of which clusters can be made."""

from grid.clusters.frameworks.base import FrameworkAdapter
from grid.clusters.frameworks.dask import Dask
from grid.clusters.frameworks.ray import Ray
from grid.clusters.frameworks.spark import Spark

_FRAMEWORKS: dict[str, FrameworkAdapter] = {adapter.name: adapter for adapter in (Dask(), Ray(), Spark())}


def framework(name: str) -> FrameworkAdapter:
    """Return the framework's adapter. Raise ValueError with a sentence for an unknown name."""
    try:
        return _FRAMEWORKS[name]
    except KeyError:
        raise ValueError(f"There is no framework {name!r}; there are {', '.join(_FRAMEWORKS)}.") from None
