"""A refused eviction names the cause that a real server names."""

from typing import Any

import pytest

from grid.sandbox.apiserver.eviction import why_not_now

NOT_NOW = "The disruption budget b does not allow evicting pods currently"


@pytest.mark.parametrize(
    ("healthy", "reason", "message", "refusal"),
    [
        (1, "InsufficientPods", "", "The disruption budget b needs 1 healthy pods and has 1 currently"),
        (0, "SyncFailed", "no controller", f"{NOT_NOW} because it failed sync: no controller"),
        (0, "InsufficientPods", "too few", "The disruption budget b needs 1 healthy pods and has 0 currently"),
        (2, "InsufficientPods", "wait", f"{NOT_NOW} (InsufficientPods): wait"),
        (2, "InsufficientPods", "", NOT_NOW),
    ],
)
def test_the_cause_fits_the_budgets_state(healthy: int, reason: str, message: str, refusal: str) -> None:
    condition = {"type": "DisruptionAllowed", "status": "False", "reason": reason, "message": message}
    status: dict[str, Any] = {"desiredHealthy": 1, "currentHealthy": healthy, "conditions": [condition]}
    assert why_not_now("b", status) == refusal
