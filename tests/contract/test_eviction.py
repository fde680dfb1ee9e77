"""An eviction is a deletion that asks the disruption budgets first, and is refused with 429 when they have nothing left."""

from tests.contract.manifests import RUNNING_AND_READY, disruption_budget, eviction, pod
from tests.contract.space import Space


async def ready_pods(space: Space, name: str, count: int) -> list[str]:
    names = [f"{name}-{index}" for index in range(count)]
    for each in names:
        (await space.create("pods", pod(each, labels={"app": name}))).ok(201)
        (await space.patch("pods", each, RUNNING_AND_READY, sub="status")).ok(200)
    return names


async def budget(space: Space, name: str, *, min_available: int, allowed: int) -> None:
    (await space.create("poddisruptionbudgets", disruption_budget(name, app=name, min_available=min_available))).ok(201)
    await space.until(
        "poddisruptionbudgets",
        name,
        lambda each: each["status"].get("observedGeneration") == 1 and each["status"]["disruptionsAllowed"] == allowed,
        f"should allow {allowed} disruptions",
    )


async def evict(space: Space, name: str) -> int:
    answer = await space.create("pods", eviction(name), name=name, sub="eviction")
    if answer.status != 429:
        assert answer.ok(201)["status"] == "Success"
    return answer.status


async def test_a_pod_without_a_budget_is_evicted(space: Space, name: str) -> None:
    (only,) = await ready_pods(space, name, 1)
    assert await evict(space, only) == 201
    await space.until_gone("pods", only)


async def test_a_budget_refuses_the_eviction_that_would_break_it(space: Space, name: str) -> None:
    first, second = await ready_pods(space, name, 2)
    await budget(space, name, min_available=1, allowed=1)
    assert await evict(space, first) == 201
    answer = await space.create("pods", eviction(second), name=second, sub="eviction")
    refusal = answer.refused(429, "TooManyRequests")
    assert refusal["message"] == "Cannot evict pod as it would violate the pod's disruption budget."
    assert [cause["reason"] for cause in refusal["details"]["causes"]] == ["DisruptionBudget"]
    assert "deletionTimestamp" not in (await space.get("pods", second)).ok(200)["metadata"]


async def test_a_budget_tells_what_it_sees(space: Space, name: str) -> None:
    await ready_pods(space, name, 3)
    await budget(space, name, min_available=2, allowed=1)
    status = (await space.get("poddisruptionbudgets", name)).ok(200)["status"]
    assert {key: status[key] for key in ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods")} == {
        "currentHealthy": 3,
        "desiredHealthy": 2,
        "disruptionsAllowed": 1,
        "expectedPods": 3,
    }
