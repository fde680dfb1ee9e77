"""The frameworks that clusters can be made of."""

from grid.launch.frameworks.base import Framework
from grid.launch.frameworks.dask import Dask
from grid.launch.frameworks.ray import Ray
from grid.launch.frameworks.spark import Spark
from grid.launch.spec import ExecutionSpec

# Dask's own redirect from the root of its UI goes wrong under a prefix.
_UI_START = {"dask": "status"}
_FRAMEWORKS: dict[str, Framework] = {one.name: one for one in (Dask(), Ray(), Spark())}


def framework(name: str) -> Framework:
    """Raises ValueError with a sentence for a name that is none."""
    try:
        return _FRAMEWORKS[name]
    except KeyError:
        raise ValueError(f"There is no framework {name!r}; there are {', '.join(_FRAMEWORKS)}.") from None


def ui_path(spec: ExecutionSpec) -> str:
    """Where a link to the cluster's UI goes: a path of the dashboard's proxy."""
    return spec.base_url + (_UI_START.get(spec.cluster.framework, "") if spec.cluster else "")
