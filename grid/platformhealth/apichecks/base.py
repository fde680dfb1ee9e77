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
    """`run` raises CheckFailed, or an error of `grid.core.errors`, when the API does not do it; without the rights it is not run."""

    key: str
    name: str
    run: Callable[[Scratch], Awaitable[None]]
    rights: tuple[NeededRight, ...] = ()
    seconds: float = CHECK_SECONDS


def check(
    key: str, name: str, run: Callable[[Scratch], Awaitable[None]], rights: str = "", *, seconds: float = CHECK_SECONDS
) -> ApiCheck:
    """Return a check; its rights as text, such as "create pods, patch deployments apps"."""
    needed = tuple(NeededRight(*part.split()) for part in rights.split(", ")) if rights else ()
    return ApiCheck(key, name, run, needed, seconds)


def access_review(namespace: str, right: NeededRight) -> RawObject:
    """Return the question whether we have the right."""
    name, _, subresource = right.resource.partition("/")
    asked = {"namespace": namespace, "verb": right.verb, "group": right.group, "resource": name}
    if subresource:
        asked["subresource"] = subresource
    return {
        "apiVersion": ACCESS_REVIEWS.api_version,
        "kind": ACCESS_REVIEWS.kind,
        "spec": {"resourceAttributes": asked},
    }
