"""Says what is lost when a cluster's head is restarted, for each framework; pure."""

_LOST = {
    "dask": (
        "The scheduler forgets every task and every result that is not written to a file; work that runs now is lost.",
        "Workers connect to the new scheduler by themselves, with empty memory.",
        "In notebooks, make a new Client() and start the computation again.",
    ),
    "ray": (
        "All jobs, actors and objects of this cluster are lost: the head keeps where they are.",
        "Workers end with the head and start again by themselves.",
        "In notebooks, call ray.shutdown() and ray.init() again, and start the work again.",
    ),
    "spark": (
        "The master forgets the applications that are registered; their executors end, and what they had cached is lost.",
        "Workers register with the new master by themselves.",
        "A cell that runs now would wait without end: interrupt it, stop the SparkSession and build it again.",
    ),
}
_KEPT = "Files in the project stay, and so do the cluster's address, its workers' number and its history."


def lost_by_restart(framework: str) -> tuple[str, ...]:
    """Return sentences about what is lost; the last one says what is kept."""
    unknown = ("Everything that is only in the memory of the head is lost, and what the workers do for it.",)
    return (*_LOST.get(framework, unknown), _KEPT)
