"""What a cluster waits for, and what people did to it, in words."""

from grid.core.reasons import Reader, Sentence, Values, filled
from grid.core.translation import gettext as _
from grid.core.wording import plural

HEAD_READY, HEAD_DOWN, NO_WORKER = "head_ready", "head_down", "no_worker_ready"


def _resized(values: Values, reader: Reader) -> str:
    def workers(minimum: int, maximum: int) -> str:
        if minimum == maximum:
            return plural(minimum, "worker", "workers")
        return _("{minimum} to {maximum} workers", minimum=minimum, maximum=maximum)

    before, after = workers(*values["before"]), workers(*values["after"])
    return _("{by} changed it from {before} to {after}.", by=values["by"], before=before, after=after)


SENTENCES: dict[str, Sentence] = {
    HEAD_READY: filled(_("The head is ready; it waits for the first worker.")),
    HEAD_DOWN: filled(
        _("The head does not answer now; a new one starts by itself. What the old one held in memory is lost.")
    ),
    NO_WORKER: filled(_("No worker is ready now; new ones start by themselves.")),
    "Resized": _resized,
    "HeadRestarted": filled(
        _("{by} restarted the head; what its memory held is lost, and the workers join the new one.")
    ),
}
