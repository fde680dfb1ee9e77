"""Says what is lost when a cluster's head is restarted, for each framework; pure."""

from grid.core.translation import gettext as _

_LOST = {
    "dask": (
        _("The scheduler forgets every task and every result that is not written to a file; running work is lost."),
        _("Workers connect to the new scheduler by themselves, with empty memory."),
        _("In notebooks, make a new Client() and start the computation again."),
    ),
    "ray": (
        _("All jobs, actors and objects of this cluster are lost: only the head knows where they are."),
        _("Workers end with the head and start again by themselves."),
        _("In notebooks, call ray.shutdown() and ray.init() again, and start the work again."),
    ),
    "spark": (
        _(
            "The master forgets the applications that are registered; their executors end, and what they had cached is lost."
        ),
        _("Workers register with the new master by themselves."),
        _("A running cell would wait for ever: interrupt it, stop the SparkSession and build it again."),
    ),
}
_KEPT = _("The project's files, the cluster's address, its number of workers and its history are kept.")


def lost_by_restart(framework: str) -> tuple[str, ...]:
    """Return sentences about what is lost; the last one says what is kept."""
    unknown = (_("Everything that is only in the head's memory is lost, and the workers' unfinished work with it."),)
    return (*_LOST.get(framework, unknown), _KEPT)
