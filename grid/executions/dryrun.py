"""Dry runs of launches: a web process asks, the leading controller tries the very objects with `dryRun=All` and writes down the answer. No
launch needs an answer, so what nobody answers in time is dropped, and a failure harms nothing else."""

import asyncio
import logging
import random
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import msgspec

from grid.core.backoff import Backoff
from grid.core.decoding import prepared
from grid.core.errors import Conflict, GridError, NotAllowed, NotFound, Rejected
from grid.core.translation import gettext as _
from grid.database.turns import PersonTurns, first_of_each
from grid.diagnosis.refusals import NO_DRY_RUN, explain_refusal
from grid.executions.context import Context
from grid.executions.manifests import Manifest
from grid.executions.preview import Preview
from grid.executions.spec import ExecutionSpec
from grid.kube.api import KubeApi
from grid.kube.errors import answer_of
from grid.kube.resources import DEPLOYMENTS, PODS
from grid.kube.trouble import ClusterTrouble, trouble_of
from grid.models import CheckOutcome, LaunchCheck, User

logger = logging.getLogger(__name__)

ANSWERED_WITHIN = timedelta(seconds=10)  # after that nobody looks any more
VALID_FOR = timedelta(seconds=30)  # an answer is as old as the cluster that it is about
WINDOW = timedelta(minutes=1)
MOST_IN_WINDOW = 20  # requests of one user; each is a few requests to the API server
KEPT_FOR = timedelta(hours=1)
AT_ONCE = 20
TRY_SECONDS = 5.0
_TEXT_LENGTH = 2000


@dataclass(frozen=True, slots=True)
class DryRunAnswer:
    """The answer in words; `evidence` is Kubernetes' own text."""

    outcome: CheckOutcome
    message: str
    evidence: str = ""


def ask(id: str, user: User, data_plane: str, preview: Preview, *, now: datetime) -> LaunchCheck | None:
    """Return the user's request for this launch, new or of a moment ago; None when the user has asked too often."""
    known = LaunchCheck.objects.filter(pk=id, user=user).first()
    if known is not None and is_current(known, now):
        return known
    recent = LaunchCheck.objects.filter(user=user, asked_at__gt=now - WINDOW)
    if recent.count() >= MOST_IN_WINDOW:
        return None
    specs = [msgspec.to_builtins(spec) for spec in preview.specs]
    values = {"user": user, "data_plane": data_plane, "specs": specs, "asked_at": now}
    values |= {"answered_at": None, "outcome": CheckOutcome.ASKED, "message": "", "evidence": ""}
    return LaunchCheck.objects.update_or_create(pk=id, defaults=values)[0]


def is_current(check: LaunchCheck, now: datetime) -> bool:
    """Return whether the request still stands: answered not long ago, or asked a moment ago."""
    if check.answered_at is not None:
        return now - check.answered_at < VALID_FOR
    return now - check.asked_at < ANSWERED_WITHIN


def unanswered(data_plane: str, *, now: datetime) -> list[tuple[int, tuple[str, datetime, Any]]]:
    """Return the oldest request of each user that is still waited for: the user, and its id, when it was asked, and specs."""
    rows = LaunchCheck.objects.filter(data_plane=data_plane, answered_at=None, asked_at__gt=now - ANSWERED_WITHIN)
    first = first_of_each(rows, "user", "asked_at", "pk", at_most=1).values_list("user", "pk", "asked_at", "specs")
    return [(user, (id, asked_at, specs)) for user, id, asked_at, specs in first[:AT_ONCE]]


def record(id: str, answer: DryRunAnswer, *, now: datetime) -> None:
    message, evidence = answer.message[:_TEXT_LENGTH], answer.evidence[:_TEXT_LENGTH]
    check = LaunchCheck.objects.filter(pk=id)
    check.update(outcome=answer.outcome, message=message, evidence=evidence, answered_at=now)


def purge(now: datetime, at_most: int) -> int:
    """Delete old requests; see `grid.controller.housekeeping`."""
    old = list(LaunchCheck.objects.filter(asked_at__lt=now - KEPT_FOR).values_list("pk", flat=True)[:at_most])
    LaunchCheck.objects.filter(pk__in=old).delete()
    return len(old)


async def dry_run(api: KubeApi, objects: Sequence[Manifest], *, namespace: str) -> DryRunAnswer:
    """Try to create each object and return the answer. The pods of Deployments are tried too: the quota does not look into a template."""
    manifests = [*objects, *_pods_of(objects)]
    for manifest in manifests:
        try:
            async with asyncio.timeout(TRY_SECONDS):
                await api.create(manifest.resource, manifest.body, namespace=namespace, dry_run=True)
        except Conflict:
            logger.debug("dry run: exists already name=%s", manifest.name)
        except (NotAllowed, Rejected) as error:
            return _refused(manifest, error)
        except NotFound:
            sentence = _("The namespace of executions does not exist yet, so there was nothing to try it in.")
            return DryRunAnswer(CheckOutcome.NOT_KNOWN, sentence)
        except (GridError, TimeoutError) as error:
            return _no_answer(error)
    sentence = _("The cluster accepted a dry run of its {count} objects.", count=len(manifests))
    return DryRunAnswer(CheckOutcome.CONFIRMED, sentence)


class DryRuns:
    """Answers requests; `run` until cancelled. `wake` says that there may be new ones."""

    def __init__(self, context: Context, *, rng: random.Random) -> None:
        self._context = context
        self._rng = rng
        self._woken = asyncio.Event()
        self._turns = PersonTurns[int]()

    def wake(self) -> None:
        self._woken.set()

    async def run(self, period: Callable[[], float]) -> None:
        """Answer each request; look again when woken, and after `period` seconds because a wake-up can be lost."""
        backoff = Backoff(longest=60.0, rng=self._rng)
        while True:
            self._woken.clear()
            pause = period()
            try:
                await self.answer_all()
                backoff.reset()
            except Exception as error:
                logger.warning("launches not checked reason=%s", error)
                pause = max(pause, backoff.next())
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._woken.wait()

    async def answer_all(self) -> None:
        """Answer all requests that somebody waits for, in turn by user; those that a slow cluster makes too late are not tried."""
        context, plane = self._context, self._context.target.data_plane
        while waiting := await context.due_work(unanswered, plane, now=context.clock()):
            for _user, (id, asked_at, specs) in self._turns.each(waiting):
                if context.clock() - asked_at >= ANSWERED_WITHIN:
                    continue
                answer = await self._answer(specs)
                await context.due_work(record, id, answer, now=context.clock())
                logger.info("launch checked execution=%s outcome=%s", id, answer.outcome)

    async def _answer(self, specs: Any) -> DryRunAnswer:
        context = self._context
        try:
            preview = Preview(msgspec.convert(specs, prepared(tuple[ExecutionSpec, ...])))
        except msgspec.ValidationError as error:
            return DryRunAnswer(CheckOutcome.NOT_KNOWN, _("The controller is of another release."), str(error))
        token = context.target.token(preview.specs[0].id)
        objects = preview.objects(namespace=context.namespace, storage=context.target.storage, token=token)
        return await dry_run(context.api, objects, namespace=context.namespace)


def _refused(manifest: Manifest, error: GridError) -> DryRunAnswer:
    evidence = answer_of(error).message
    known, outcome = explain_refusal(evidence), CheckOutcome.REFUSED
    sentence = _("The cluster would not take its {kind}. Ask an admin of the cluster.", kind=manifest.resource.kind)
    if known:
        sentence = f"{known.sentence} {known.next_step}"
        outcome = CheckOutcome.NOT_KNOWN if known.code == NO_DRY_RUN else outcome
    return DryRunAnswer(outcome, sentence, evidence)


def _no_answer(error: BaseException) -> DryRunAnswer:
    """What failed on the cluster's side forbids nothing, and a launch is tried again; but what etcd cannot store is refused."""
    evidence = answer_of(error).message
    known = explain_refusal(evidence)
    if known is None:
        trouble = trouble_of(error) if isinstance(error, GridError) else ClusterTrouble.SILENT
        sentence = _("{trouble}. You can launch it anyway.", trouble=trouble.value)
        return DryRunAnswer(CheckOutcome.NOT_KNOWN, sentence, str(error))
    outcome = CheckOutcome.REFUSED if known.for_good else CheckOutcome.NOT_KNOWN
    return DryRunAnswer(outcome, f"{known.sentence} {known.next_step}", evidence)


def _pods_of(objects: Iterable[Manifest]) -> list[Manifest]:
    """Return one pod of each Deployment, as its controllers would create it."""
    pods = []
    for deployment in (manifest for manifest in objects if manifest.resource == DEPLOYMENTS):
        template = deployment.body["spec"]["template"]
        name = {"name": deployment.name, "namespace": deployment.body["metadata"]["namespace"]}
        pods.append(Manifest.of(PODS, {**template["metadata"], **name}, spec=template["spec"]))
    return pods
