"""What a check of the API is, and the rights that it needs."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from grid.kube.objects import RawObject
from grid.kube.resources import ACCESS_REVIEWS
from grid.platformhealth.apicheckresults import NeededRight
from grid.platformhealth.apichecks.scratch import Scratch

CHECK_SECONDS = 30.0


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
