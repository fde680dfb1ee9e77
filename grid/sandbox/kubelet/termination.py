"""The termination message of a container, read when it has ended."""

from grid.sandbox.client import Object
from grid.sandbox.kubelet.logfiles import last_lines
from grid.sandbox.kubelet.runtime import Attempt

_LONGEST_FILE = 4096
_LONGEST_LOG, _LOG_LINES = 2048, 80


def termination_message(attempt: Attempt, container: Object) -> str:
    """Return the content of terminationMessagePath, or the end of the log where the policy asks for that after an error."""
    path = attempt.directory / "termination-log"
    try:
        with path.open("rb") as file:
            text = file.read(_LONGEST_FILE).decode(errors="replace")
    except OSError:
        text = ""
    failed = attempt.exit is not None and attempt.exit.code != 0
    if not text and failed and container.get("terminationMessagePolicy") == "FallbackToLogsOnError":
        text = "\n".join(last_lines(attempt.directory / "log", _LOG_LINES))[-_LONGEST_LOG:]
    return text
