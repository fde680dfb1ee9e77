"""Which run and attempt of a job an execution is, for its page; pure."""

from dataclasses import dataclass

from grid.core.translation import gettext as _


@dataclass(frozen=True, slots=True)
class SiblingAttempt:
    """Another attempt of the same run."""

    execution_id: str
    number: int
    state: str
    message: str

    @property
    def words(self) -> str:
        """What came of it, such as "failed: Exit code 1."."""
        return f"{self.state}: {self.message}" if self.message else self.state


@dataclass(frozen=True, slots=True)
class RunPlace:
    """A value of a live fragment, so hashable. `job_id` is "" for a deleted job; `message` says why the run waits, or how it ended."""

    execution_id: str
    job_id: str
    job_name: str
    number: int
    attempt: int
    most_attempts: int
    parameters: tuple[tuple[str, str], ...]
    others: tuple[SiblingAttempt, ...]
    message: str
    exit_words: str  # "137, it was killed (SIGKILL)"; "" until its pod says so
    again: str  # URL for another run of the same; "" when there is no job any more
    is_tried_again: bool  # it failed, and the run launches another attempt by itself

    @property
    def attempt_words(self) -> str:
        words = _("Attempt {attempt} of {most_attempts}", attempt=self.attempt, most_attempts=self.most_attempts)
        return words if self.most_attempts > 1 else ""
