"""What a check of the cluster's API has found; pure."""

from collections import Counter
from collections.abc import Sequence
from typing import Literal

import msgspec

from grid.core.translation import gettext as _
from grid.core.wording import plural

CheckOutcomeWord = Literal["passed", "failed", "no right"]


class NeededRight(msgspec.Struct, frozen=True):
    """A right in one namespace, as a Role writes it: `resource` may have a subresource, as in "pods/log"."""

    verb: str
    resource: str
    group: str = ""

    def __str__(self) -> str:
        name, _, subresource = self.resource.partition("/")
        qualified = f"{name}.{self.group}" if self.group else name
        return f"{self.verb} {qualified}{'/' + subresource if subresource else ''}"


class ApiCheckResult(msgspec.Struct, frozen=True):
    """One check's end. `words` are Kubernetes' own where it refused, and name the missing rights of one that was not run."""

    key: str
    name: str
    outcome: CheckOutcomeWord
    words: str = ""
    seconds: float = 0.0


def summary(results: Sequence[ApiCheckResult]) -> str:
    """Return for example "18 passed, 1 failed, 2 not run"."""
    counted = Counter(result.outcome for result in results)
    parts = [_("{checks} passed", checks=plural(counted["passed"], "check", "checks"))]
    if counted["failed"]:
        parts.append(_("{checks} failed", checks=counted["failed"]))
    if counted["no right"]:
        parts.append(_("{checks} not run because a right is missing", checks=counted["no right"]))
    return ", ".join(parts)
