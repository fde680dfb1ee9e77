"""Explains probes: a program that is not ready yet, and one that was restarted because it failed its liveness or startup probe."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from grid.core.regexes import Expression
from grid.core.translation import gettext as _
from grid.core.wording import duration
from grid.diagnosis.beside import FRONT_PORTS, is_about, spec_of, subject
from grid.diagnosis.diagnosis import Diagnosis, latest, quoted, since
from grid.diagnosis.exits import explain_by_log
from grid.diagnosis.logfindings import LogFinding
from grid.diagnosis.rules import RuleTable, core_words
from grid.kube.objects import ContainerStatus, Event, Pod, Running, Terminated
from grid.kube.slim import ContainerProbe

_SILENCE_IS_NEWS = timedelta(minutes=1)
_START_IS_SLOW = timedelta(minutes=5)
_CLOCKS_DIFFER = timedelta(seconds=5)
_HOOK = _("postStart hook")
CORRECT_HOOK = _("Correct the command of the hook (lifecycle.postStart), whose output is not in the log.")
_BY_SIGNAL = (137, 143)  # how a program ends that the kubelet kills
# The kubelet's words for an answer that says "not ready".
ANSWERS = RuleTable(("http", r"statuscode: (\d+)", "HTTP {}"), ("grpc", r'responded with "(\w+)"', "{}"))
# Why there was no answer, and what the log may show of it.
SILENCES = RuleTable(
    ("timed-out", r"timed out|timeout|deadline exceeded", _("it hung, or was too busy to answer in time")),
    ("refused", r"connection refused", _("it accepted no connections on the probe's port")),
)
# Where the probe and the program do not fit each other, so that no answer of the program can make it succeed.
MISFITS = RuleTable(
    ("no-command", r'exec: "([^"]+)": [^:]*(?:not found|no such file or directory|permission denied)',
     _("the image has no {name} that can be executed")),
    ("scheme", r"malformed HTTP response|to (?:an )?HTTPS (?:server|client)|first record does not look like a TLS handshake",
     _("one of them speaks HTTP, and the other HTTPS")),
    ("no-grpc-health", r"unknown service grpc\.health|code = Unimplemented", _("the program has no gRPC health service")),
)  # fmt: skip
_FIT = _("Correct the probe, or ask your admin to: the program may well answer.")
_OUTCOME = Expression(r"(?s)^\w+ probe (?:failed|errored and resulted in unknown state): (.*)$")


@dataclass(frozen=True, slots=True)
class FailedProbe:
    """The probe or hook for whose failure the kubelet ended a run of a container; `message` is the kubelet's, "" when it is not known.
    `known` is what the end of the log says of the cause."""

    name: str
    message: str
    evidence: tuple[str, ...]
    known: LogFinding | None = None

    @property
    def words(self) -> str:
        """Return "startup probe (HTTP 503)." as the end of a sentence, and what the log says of the cause."""
        if misfit := _misfit(self.message):
            return _("{name} probe, which does not fit it: {misfit}.", name=self.name, misfit=misfit)
        answer = _answer(self.message) or _unknown(self.message)
        words = _("{name} probe ({answer}).") if answer else _("{name} probe.")
        words = f"{self.name}." if self.name == _HOOK else words.format(name=self.name, answer=answer)
        return f"{words} {self.known.meaning}" if self.known else words

    @property
    def next_step(self) -> str:
        if self.name == _HOOK:
            return CORRECT_HOOK
        if _misfit(self.message):
            return _FIT
        why = SILENCES.meaning(self.message)
        words = _("See the previous run's log") + (f": {why}." if why else ".")
        if answer := _answer(self.message):
            words = _("See the previous run's log for why it answered with {answer}.", answer=answer)
        return f"{words} {self.known.cure}" if self.known else words


def explain_unanswered(
    pod: Pod, status: ContainerStatus, running: Running, events: Sequence[Event], *, now: datetime
) -> Diagnosis:
    """Explain a container that runs and is not ready, by what its probe asks and what it answers."""
    waited, message = since(running.started_at, now), probe_message(status, running, events)
    program, evidence = subject(pod, status), quoted(message)
    step = _("Look at its log; stop it and launch it again if it hangs.")
    if (lost_at := _lost_at(pod, running)) is not None:
        time = duration(since(lost_at, now))
        sentence = _("{program} answered before, and has not for {time}.", program=program, time=time)
        if answer := _answer(message):
            sentence = _("{sentence} It answers with {answer}.", sentence=sentence, answer=answer)
        if since(lost_at, now) < _SILENCE_IS_NEWS:
            return Diagnosis("starting", sentence, "wait", "", "", evidence)
        return Diagnosis("not_answering", sentence, "problem", "you", step, evidence)
    if waited < _START_IS_SLOW:
        answers = not_ready_words(pod, status, message)
        sentence = _("{program} is starting and {answers}.", program=program, answers=answers)
        return Diagnosis("starting", sentence, "wait", "", "", evidence)
    runs = _("Running") if program == _("The program") else _("{program} has been running", program=program)
    name, probe = _asked(pod, status)
    where, answer = _where(probe), _answer_of(probe, message)
    sentence = _("{runs} for {waited} without answering{where}{says}.")
    if misfit := _misfit(message):
        sentence, step = _("{runs} for {waited}, but its {name} probe does not fit it: {misfit}."), _FIT
    elif answer:
        sentence = _("{runs} for {waited}, and still answers{where} with {answer}.")
        step = _("See its log for why it answers with {answer}.", answer=answer)
    elif "timed out after" in message or "exec in container: timeout" in message:  # of containerd and of older runtimes
        sentence = _("{runs} for {waited}, but the command of its {name} probe does not end in time.")
        step = _("It may be too busy: choose a tier with more cores, or ask your admin for a longer probe timeout.")
    elif probe is not None and not probe.port:
        sentence = _("{runs} for {waited} without passing its {name} probe{says}.")
    says = f": {unknown}" if (unknown := _unknown(message)) else ""
    sentence = sentence.format(
        runs=runs, waited=duration(waited), where=where, answer=answer, name=name, misfit=misfit, says=says
    )
    return Diagnosis("not_answering", sentence, "problem", "you", step, evidence)


def _lost_at(pod: Pod, running: Running) -> datetime | None:
    """Return when a pod that had been ready stopped to be so; None when it has not been ready in this run. The condition of a pod that is
    not ready yet has not changed since its containers were created."""
    ready = next((condition for condition in pod.status.conditions if condition.type == "Ready"), None)
    changed = ready.last_transition_time if ready is not None and ready.status == "False" else None
    is_of_start = running.started_at is None or (changed and changed <= running.started_at + _CLOCKS_DIFFER)
    return None if is_of_start else changed


def not_ready_words(pod: Pod, status: ContainerStatus, message: str) -> str:
    """Return "does not answer on port 8888 yet", or what else its probe finds; `message` is the probe's last failure."""
    name, probe = _asked(pod, status)
    if answer := _answer_of(probe, message):
        return _("answers{where} with {answer}, so it is not ready yet", where=_where(probe), answer=answer)
    if probe is not None and not probe.port:
        return _("has not passed its {name} probe yet", name=name)
    return _("does not answer{where} yet", where=_where(probe))


def probe_message(status: ContainerStatus, running: Running, events: Sequence[Event]) -> str:
    """Return the last failure of the readiness or startup probe in this run of the container, "" when there was none."""
    failures = [
        event
        for event in events
        if event.message.startswith(("Readiness probe", "Startup probe"))
        and is_about(event, status)
        and (event.last_seen is None or running.started_at is None or event.last_seen >= running.started_at)
    ]
    failure = latest(failures, "Unhealthy")
    return failure.message if failure else ""


def failed_probe(status: ContainerStatus, ended: Terminated, events: Sequence[Event]) -> FailedProbe | None:
    """Return the probe or hook for whose failure the kubelet ended this run of the container; None when there was none."""
    during = [event for event in events if is_about(event, status) and _is_during(event, ended)]
    if (hook := latest(during, "FailedPostStartHook")) is not None:
        return FailedProbe(_HOOK, hook.message, quoted(hook.message))
    for probe in ("liveness", "startup"):
        words = f"{probe.capitalize()} probe failed"
        failure = next((event.message for event in reversed(during) if event.message.startswith(words)), "")
        killed = any(event.message.startswith(f"Container {status.name} failed {probe} probe") for event in during)
        if killed or (failure and ended.exit_code in _BY_SIGNAL):
            code, known = _("exit code {exit_code}", exit_code=ended.exit_code), explain_by_log(ended)
            return FailedProbe(probe, failure, quoted(known.line if known else "", failure, code), known)
    return None


def _is_during(event: Event, ended: Terminated) -> bool:
    """Return True when the event happened during the run that has ended; equal events are counted in one that spans all of them."""
    last, first = event.last_seen, event.first_timestamp or event.last_seen
    if last is None or first is None or ended.finished_at is None:
        return False
    began = ended.started_at or ended.finished_at - _START_IS_SLOW
    return began <= last and first <= ended.finished_at + _CLOCKS_DIFFER


def _answer(message: str) -> str:
    """Return "HTTP 503" or "NOT_SERVING": what the program answered, "" when it did not."""
    rule = ANSWERS.find(message)
    return rule[1].format(rule[2][1]) if rule else ""


def _misfit(message: str) -> str:
    """Return why the probe can never succeed, "" when it may."""
    rule = MISFITS.find(message)
    return rule[1].format(name=next(iter(rule[2].groups()), "")) if rule else ""


def _unknown(message: str) -> str:
    """Return the probe's own words when no rule knows them, as a part of a sentence; "" otherwise."""
    outcome = _OUTCOME.search(message)
    return "" if outcome is None or ANSWERS.find(message) or SILENCES.find(message) else core_words(outcome[1])


def _answer_of(probe: ContainerProbe | None, message: str) -> str:
    """Return what the program answered; "" for what nginx in front says in the place of one that does not."""
    answer = _answer(message)
    return "" if answer == "HTTP 502" and probe and probe.port in FRONT_PORTS else answer


def _asked(pod: Pod, status: ContainerStatus) -> tuple[str, ContainerProbe | None]:
    spec = spec_of(pod, status)
    if status.started or spec.startup_probe is None:
        return "readiness", spec.readiness_probe
    return "startup", spec.startup_probe


def _where(probe: ContainerProbe | None) -> str:
    if not probe or not probe.port or probe.port in FRONT_PORTS:  # nginx's own port is not where the program listens
        return ""
    return _(" on port {port}", port=probe.port)
