"""Revisions of environments: which is the current one, making and deprecating them, and which versions they declare.

Each change is one transaction that locks the environment, so two at the same moment get two numbers, and the environment's image is that of
its current revision whenever somebody launches.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
from django.db import transaction
from django.db.models import QuerySet

from grid.audit import entries as audit
from grid.clusters.frameworkversions import Declared, declared, pair_sentences
from grid.configuration import BUILDS_PER_PERSON, value_of
from grid.core.errors import Rejected, rejection
from grid.core.reasons import Sentence
from grid.core.regexes import Expression
from grid.core.requirementlines import BUILT_HERE, parse_requirements
from grid.core.translation import gettext as _
from grid.environments.packageindex import packages_of
from grid.executions.spec import EnvironmentSpec, environment_spec
from grid.models import AuditEntry, Environment, EnvironmentRevision, Execution, Job, User, Workspace

State = EnvironmentRevision.State
CAN_RUN = (State.READY, State.DEPRECATED)
LONGEST_TEXT = 20_000
_DEEPEST = 10  # revisions on top of one another; a longer chain is read as far as that
MOST_BUILDS = 3  # attempts of a cluster that ends before it has built it
IMAGE_NAME = Expression(r"[!-~]{1,255}")
_CUT_SHORT = _(
    "The cluster ended {times} times while it was building this; it may lack memory or room on the disk. "
    "Look at the cluster's log, then make the revision again.",
    times=MOST_BUILDS,
)
SILENT = _("The cluster does not answer now. The build continues, or begins again, as soon as it does.")
_BEYOND_LIMIT = _("It waits: {most} builds of one person run at once. It begins by itself when one of them has ended.")
SENTENCES: dict[str, Sentence] = {
    "builder_silent": lambda values, reader: SILENT,
    "builds_of_person": lambda values, reader: _BEYOND_LIMIT.format(most=values["most"]),
}


class BuildProgress(msgspec.Struct, frozen=True):
    """How a build goes, as its builder tells it. `id` is the builder's own of this attempt; sizes are in bytes."""

    id: str
    state: str  # building, ready or failed
    message: str = ""
    log: str = ""
    digest: str = ""
    size_bytes: int = 0
    layer_bytes: int = 0
    image: str = ""  # what pods run, if it is not the name that was asked for


@dataclass(frozen=True, slots=True)
class RevisionUses:
    """How many use a revision: executions that have not ended, workspaces that would resume with it, and jobs that ran with it last."""

    running: int = 0
    workspaces: int = 0
    jobs: int = 0


def current_number(revisions: Iterable[tuple[int, str]]) -> int:
    """Return the number of the current one among revisions with their states: the newest that is ready; 0 when none is."""
    return max((number for number, state in revisions if state == State.READY), default=0)


def image_name(
    environment: str, number: int, base_image: str, requirements: Iterable[str], repository: str = BUILT_HERE
) -> str:
    """Return the name of an image to build; another content has another name, also in another database. So has another
    repository: the Job that builds it is named after the rest, and one of the former repository is not taken for it."""
    content = "\n".join([repository, base_image, *requirements])
    return f"{repository}{environment}:{number}-{hashlib.sha256(content.encode()).hexdigest()[:8]}"


def make_image(environment_id: str, image: str, *, note: str, by: str, now: datetime) -> EnvironmentRevision:
    """Make an image of a registry the environment's current revision. Raise Rejected."""
    image = image.strip()
    if not IMAGE_NAME.fullmatch(image):
        words = _(
            "Give the image as a name with its tag or digest, without blanks, such as registry.example.com/lab:4."
        )
        raise rejection(words, "image", path="image")
    with transaction.atomic():
        environment = _locked(environment_id)
        made = _make(environment, by=by, now=now, note=note, image=image, state=State.READY, ready_at=now)
        _set_current(environment)
    return made


def make_built(
    environment_id: str, base: int, text: str, *, note: str, by: str, now: datetime, repository: str = BUILT_HERE
) -> EnvironmentRevision:
    """Store a revision of requirements on top of the base with that number, which the controller has built. Raise Rejected."""
    if len(text) > LONGEST_TEXT:
        raise rejection(_("Use at most {most:,} characters.", most=LONGEST_TEXT), "too_long", path="requirements")
    requirements, problems = parse_requirements(text)
    if problems:
        raise Rejected(problems)
    with transaction.atomic():
        environment = _locked(environment_id)
        below = environment.revisions.filter(number=base, state=State.READY).first()
        if below is None:
            raise rejection(_("Choose a revision that is ready; this one is not, or no longer."), "base", path="base")
        name = image_name(environment_id, _next_number(environment), below.image, requirements, repository)
        about: dict[str, Any] = {"image": name, "base": below, "requirements": "\n".join(requirements)}
        return _make(environment, by=by, now=now, note=note, state=State.BUILDING, **about)


def deprecate(environment_id: str, number: int, *, because: str) -> EnvironmentRevision:
    """Take a ready revision from launches; what has it keeps it. Raise Rejected, for the only ready one too."""
    with transaction.atomic():
        environment = _locked(environment_id)
        revision = environment.revisions.filter(number=number).first()
        if revision is None or revision.state not in CAN_RUN:
            raise rejection(_("Only a revision that is ready can be deprecated."), "state")
        if revision.state == State.READY:
            if not environment.revisions.filter(state=State.READY).exclude(pk=revision.pk).exists():
                sentence = _("This is the only ready revision, so nothing could be launched. Make another one first.")
                raise rejection(sentence, "only_one")
            revision.state, revision.deprecated_because = State.DEPRECATED, because.strip()
            revision.save(update_fields=["state", "deprecated_because"])
            _set_current(environment)
    return revision


def to_build() -> list[EnvironmentRevision]:
    """Return the revisions that are being built, oldest first, of each person only so many; the person's others say that they wait."""
    building = EnvironmentRevision.objects.filter(state=State.BUILDING)
    most = value_of(BUILDS_PER_PERSON)
    known = list(building.order_by("pk").values_list("pk", "made_by", "build"))
    begun = Counter(person for _, person, build in known if build)
    chosen, waiting = list[int](), list[int]()
    for pk, person, build in known:
        if build or begun[person] < most:
            begun[person] += 0 if build else 1
            chosen.append(pk)
        else:
            waiting.append(pk)
    if waiting:
        _wait(building.filter(pk__in=waiting), "builds_of_person", most=most)
    return list(building.filter(pk__in=chosen).select_related("base").order_by("pk"))


def record_progress(revision_id: int, progress: BuildProgress, *, now: datetime) -> None:
    """Store what the builder says of a revision, unless that has ended. One that is ready becomes current, as the history says."""
    with transaction.atomic():
        building = EnvironmentRevision.objects.filter(pk=revision_id, state=State.BUILDING)
        environment_id = building.values_list("environment", flat=True).first()
        if environment_id is None:
            return
        environment = _locked(environment_id)
        revision = building.first()
        if revision is None:
            return
        if progress.id != revision.build:
            revision.build, revision.builds = progress.id, revision.builds + 1
        _note(revision, progress, now)
        revision.save()
        if revision.state == State.READY:
            before = audit.snapshot(environment)
            _set_current(environment)
            if (maker := User.objects.filter(username=revision.made_by).first()) is not None:
                audit.record(actor=maker, instance=environment, action=AuditEntry.Action.CHANGED, before=before)


def _note(revision: EnvironmentRevision, progress: BuildProgress, now: datetime) -> None:
    revision.log, revision.message = progress.log or revision.log, progress.message
    revision.reason, revision.reason_values = "", {}
    if progress.state == State.READY:
        revision.state, revision.ready_at = State.READY, now
        revision.digest, revision.image = progress.digest, progress.image or revision.image
        revision.size_bytes, revision.layer_bytes = progress.size_bytes or None, progress.layer_bytes or None
    elif progress.state == State.FAILED:
        revision.state = State.FAILED
    elif revision.builds > MOST_BUILDS:
        revision.state, revision.message = State.FAILED, _CUT_SHORT


def record_silence(revision_id: int) -> None:
    _wait(EnvironmentRevision.objects.filter(pk=revision_id, state=State.BUILDING), "builder_silent")


def _wait(revisions: QuerySet[EnvironmentRevision], reason: str, **values: int) -> None:
    """Store why they wait, unless they say so already: an update wakes their pages."""
    why = {"reason": reason, "reason_values": values}
    revisions.exclude(**why).update(message="", **why)


def uses_of(environment_id: str) -> dict[int, RevisionUses]:
    executions = Execution.objects.unsettled().filter(
        environment=environment_id, ended_at=None, spec__has_key="environment"
    )
    running = Counter(executions.order_by().values_list("spec__environment__revision", flat=True))
    stopped = Workspace.objects.filter(environment=environment_id, deleted_at=None).order_by()
    workspaces = Counter(stopped.values_list("environment_revision", flat=True))
    defined = Job.objects.filter(environment=environment_id, deleted_at=None).order_by()
    jobs = Counter(defined.values_list("environment_revision", flat=True))
    numbers = {number for number in (*running, *workspaces, *jobs) if number}
    return {number: RevisionUses(running[number], workspaces[number], jobs[number]) for number in numbers}


def pinned_to(environment_id: str, number: int) -> EnvironmentSpec | None:
    """Return the environment as it is now with the image of that revision; None when that is the current one, or cannot run."""
    environment = Environment.objects.filter(pk=environment_id).first()
    if environment is None or number in (0, environment.current_revision):
        return None
    revision = environment.revisions.filter(number=number, state__in=CAN_RUN).first()
    if revision is None:
        return None
    return msgspec.structs.replace(environment_spec(environment), image=revision.image, revision=number)


def other_revision(environment: Environment, number: int) -> tuple[str, bool]:
    """Return a sentence about a revision that is not the current one, and whether it is deprecated; "" for the current one."""
    revision = environment.revisions.filter(number=number, state__in=CAN_RUN).first()
    current = environment.current_revision
    if revision is None or number == current:
        return "", False
    if revision.state != State.DEPRECATED:
        return _("A newer revision {current} of {name} exists.", current=current, name=environment.name), False
    sentence = _("Revision {number} of {name} is deprecated. The current one is revision {current}.")
    if revision.deprecated_because:
        sentence = _("Revision {number} of {name} is deprecated: {why}. The current one is revision {current}.")
    why = revision.deprecated_because.rstrip(".")
    return sentence.format(number=number, name=environment.name, why=why, current=current), True


def _make(environment: Environment, *, by: str, now: datetime, note: str, **values: Any) -> EnvironmentRevision:
    number = _next_number(environment)
    return environment.revisions.create(number=number, made_by=by, made_at=now, note=note.strip(), **values)


def _next_number(environment: Environment) -> int:
    latest = environment.revisions.order_by("-number").first()
    return latest.number + 1 if latest else 1


def _set_current(environment: Environment) -> None:
    number = current_number(environment.revisions.values_list("number", "state"))
    current = environment.revisions.get(number=number)
    if (environment.current_revision, environment.image) != (number, current.image):
        environment.current_revision, environment.image = number, current.image
        environment.save()


def _locked(environment_id: str) -> Environment:
    """Return the environment, locked until the transaction ends. Raise Rejected when there is none."""
    environment = Environment.objects.select_for_update(no_key=True).filter(pk=environment_id).first()
    if environment is None:
        raise rejection(_("This environment no longer exists."), "gone")
    return environment


def declared_by(environments: Sequence[Environment]) -> list[Declared]:
    """Return what each declares, in their order, with a query for each level of revisions."""
    chains = _chains({each.pk: each.current_revision for each in environments if each.current_revision})
    return [_declared(environment, chains.get(environment.pk, [])) for environment in environments]


def version_mismatch(workspace: Environment, cluster: Environment, framework: str) -> str:
    """Return a warning about launching both together, as sentences; "" when nothing speaks against it."""
    client, server = declared_by([workspace, cluster])
    return " ".join(pair_sentences(client, server, framework))


def _declared(environment: Environment, chain: Sequence[EnvironmentRevision]) -> Declared:
    packages: dict[str, str] = {}
    for revision in reversed(chain):  # what is installed last is what is there
        # With a marker (";") it may not be installed.
        lines = [line for line in revision.requirements.splitlines() if ";" not in line]
        packages |= {package.name: package.version for package in packages_of(lines, "")}
    # The name of a built image is ours, and says nothing of what is in it.
    images = [revision.image for revision in chain if revision.base_id is None] if chain else [environment.image]
    return declared(
        environment.name, environment.frameworks, images=images, variables=environment.variables, packages=packages
    )


def _chains(numbers: Mapping[str, int]) -> dict[str, list[EnvironmentRevision]]:
    """Return each environment's current revision and those below it, from the top."""
    stored = EnvironmentRevision.objects.only("environment", "number", "image", "requirements", "base")
    current = stored.filter(environment__in=numbers, number__in=set(numbers.values()))
    chains = {each.environment_id: [each] for each in current if each.number == numbers[each.environment_id]}
    for _level in range(_DEEPEST):
        below = stored.in_bulk([chain[-1].base_id for chain in chains.values() if chain[-1].base_id is not None])
        if not below:
            break
        for chain in chains.values():
            if (base := chain[-1].base_id) in below:
                chain.append(below[base])
    return chains
