"""What a check of the API is, and the rights that it needs; runs checks one after the other, and says of each how it ended."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from grid.core.errors import ClusterUnavailable, GridError, NotAllowed
from grid.core.translation import gettext as _
from grid.core.wording import listed, one_line
from grid.kube.errors import answer_of
from grid.kube.objects import RawObject
from grid.kube.resources import ACCESS_REVIEWS
from grid.platformhealth.apicheckresults import ApiCheckResult, CheckOutcomeWord, NeededRight
from grid.platformhealth.apichecks.scratch import CheckFailed, Scratch

CHECK_SECONDS = 30.0
_LONGEST = 1000
STRANGE = (AttributeError, LookupError, TypeError, ValueError)  # from answers of another form


@dataclass(frozen=True, slots=True)
class ApiCheck:
    """`run` raises CheckFailed, or an error of `grid.core.errors`. Without the rights, as in "get pods, list jobs batch", it is not run."""

    key: str
    name: str
    run: Callable[[Scratch], Awaitable[None]]
    needs: str = ""
    seconds: float = CHECK_SECONDS

    @property
    def rights(self) -> list[NeededRight]:
        return [NeededRight(*right.split()) for right in self.needs.split(", ") if right]


async def access_review(scratch: Scratch, right: NeededRight) -> RawObject:
    """Ask whether we have the right, and return the answer."""
    name, _, subresource = right.resource.partition("/")
    asked = {"namespace": scratch.namespace, "verb": right.verb, "group": right.group, "resource": name}
    if subresource:
        asked["subresource"] = subresource
    kind, spec = ACCESS_REVIEWS.kind, {"resourceAttributes": asked}
    return await scratch.api.create(
        ACCESS_REVIEWS, {"apiVersion": ACCESS_REVIEWS.api_version, "kind": kind, "spec": spec}
    )


async def run_checks(
    scratch: Scratch,
    checks: Sequence[ApiCheck],
    *,
    monotonic: Callable[[], float],
    tell: Callable[[ApiCheckResult], Awaitable[None]],
) -> None:
    """Run all of them, whatever one finds, and tell of each as it ends."""
    allowed: dict[NeededRight, bool] = {}
    for check in checks:
        began = monotonic()
        if words := await missing_rights(scratch, check.rights, allowed):
            await tell(ApiCheckResult(check.key, check.name, "no right", words))
            continue
        outcome, words = await _ended(scratch, check)
        seconds = round(monotonic() - began, 3)
        await tell(ApiCheckResult(check.key, check.name, outcome, one_line(words)[:_LONGEST], seconds))


async def _ended(scratch: Scratch, check: ApiCheck) -> tuple[CheckOutcomeWord, str]:
    try:
        async with asyncio.timeout(check.seconds):
            await check.run(scratch)
    except NotAllowed as error:
        return "no right", answer_of(error).message
    except GridError as error:
        return "failed", answer_of(error).message
    except CheckFailed as failure:
        return "failed", str(failure)
    except TimeoutError:
        return "failed", _("It did not end within {seconds:.0f} s.", seconds=check.seconds)
    except STRANGE:
        return "failed", _("The API server answered in a form that is not Kubernetes’.")
    return "passed", ""


async def missing_rights(scratch: Scratch, rights: Sequence[NeededRight], known: dict[NeededRight, bool]) -> str:
    """Return a sentence that names those that we do not have; "" when we have all."""
    missing = [str(right) for right in rights if not await _has(scratch, right, known)]
    if not missing:
        return ""
    return _("Missing in {namespace}: {rights}.", namespace=scratch.namespace, rights=listed(missing))


async def _has(scratch: Scratch, right: NeededRight, known: dict[NeededRight, bool]) -> bool:
    """Return whether we have the right; True where the API server does not say, so that the check itself shows it."""
    if right not in known:
        try:
            review = await access_review(scratch, right)
        except ClusterUnavailable:
            return True
        except GridError:
            known[right] = True
        else:
            status = review.get("status")
            known[right] = not isinstance(status, dict) or bool(status.get("allowed", True))
    return known[right]
