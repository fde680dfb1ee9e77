"""Rollouts keep their promises whatever the numbers: never more pods than allowed, never fewer available, and they finish."""

from typing import Any

from hypothesis import given, settings, strategies as st

from grid.sandbox.client import Object
from grid.sandbox.controllers import rollout
from tests.sandbox.support import make_deployment

amounts = st.one_of(st.integers(0, 6), st.integers(0, 100).map(lambda share: f"{share}%"))


def make_set(name: str, size: int, available: int, image: str) -> Object:
    deployment = make_deployment("web", size)
    template = deployment["spec"]["template"]
    template["spec"]["containers"][0]["image"] = image
    return {
        "metadata": {"name": name, "creationTimestamp": f"2026-11-21T04:00:0{name[-1]}Z", "annotations": {}},
        "spec": {"replicas": size, "template": template},
        "status": {"replicas": size, "availableReplicas": available},
    }


def rolling(replicas: int, surge: Any, unavailable: Any) -> Object:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    return make_deployment("web", replicas, strategy=strategy)


@given(replicas=st.integers(0, 12), surge=amounts, unavailable=amounts, unhealthy=st.integers(0, 12), data=st.data())
@settings(max_examples=200, deadline=None)
def test_rollout_stays_in_its_limits_and_finishes(
    replicas: int, surge: Any, unavailable: Any, unhealthy: int, data: st.DataObject
) -> None:
    deployment = rolling(replicas, surge, unavailable)
    more, fewer = rollout.limits(deployment)
    old = make_set("web-1", replicas, max(0, replicas - unhealthy), "registry.example/app:0")
    new = make_set("web-2", 0, 0, "registry.example/app:1")
    least = min(replicas - fewer, rollout.available([old]))
    for _ in range(200):
        if rollout.total([old]) == 0 and rollout.spec_replicas(new) == replicas:
            break
        size = rollout.new_set_size(deployment, new, [old, new])
        if size != rollout.spec_replicas(new):
            new["spec"]["replicas"] = size
        else:
            for item, smaller in rollout.old_set_sizes(deployment, new, [old]):
                gone = rollout.spec_replicas(item) - smaller
                # The controller of the set ends unavailable pods first.
                ill = rollout.spec_replicas(item) - item["status"]["availableReplicas"]
                item["status"]["availableReplicas"] -= max(0, gone - ill)
                item["spec"]["replicas"] = smaller
        assert rollout.total([old, new]) <= replicas + more
        assert rollout.available([old, new]) >= least
        coming = rollout.spec_replicas(new) - new["status"]["availableReplicas"]
        if coming:
            new["status"]["availableReplicas"] += data.draw(st.integers(1, coming))
    assert (rollout.total([old]), rollout.spec_replicas(new)) == (0, replicas)


@given(sizes=st.lists(st.integers(1, 20), min_size=2, max_size=4), wanted=st.integers(0, 60), surge=amounts)
@settings(max_examples=200, deadline=None)
def test_scaling_in_the_middle_of_a_rollout_never_overshoots(sizes: list[int], wanted: int, surge: Any) -> None:
    deployment = rolling(wanted, surge, 1)
    more, _ = rollout.limits(deployment)
    sets = [make_set(f"web-{index}", size, size, f"registry.example/app:{index}") for index, size in enumerate(sizes)]
    before = sum(sizes)
    for item in sets:
        item["metadata"]["annotations"] = {rollout.DESIRED: str(before), rollout.MAXIMUM: str(before)}
    after = rollout.scaled_sizes(deployment, None, sets)
    target = wanted + more if wanted else 0
    total = sum(size for _, size in after)
    if target >= before:
        assert total == target
    else:
        # Rounding may leave some for the next look, as on Kubernetes.
        assert target <= total <= before
    assert all(size >= 0 for _, size in after)


def test_zero_limits_still_let_a_rollout_move() -> None:
    assert rollout.limits(rolling(3, "0%", "10%")) == (0, 1)


def test_template_hash_ignores_empty_fields() -> None:
    sparse = make_deployment("web", 1)["spec"]["template"]
    full = {**sparse, "metadata": {**sparse["metadata"], "creationTimestamp": None, "annotations": {}}}
    assert rollout.same_template(sparse, full)
    assert rollout.template_hash(sparse, 0) == rollout.template_hash(full, 0)
    assert rollout.template_hash(sparse, 0) != rollout.template_hash(sparse, 1)


def test_old_sets_go_by_revision_beyond_history_limit() -> None:
    deployment = make_deployment("web", 1, revisionHistoryLimit=1)
    sets = []
    for index, revision in enumerate((3, 1, 2)):
        item = make_set(f"web-{index}", 0, 0, f"registry.example/app:{index}")
        item["metadata"]["annotations"] = {rollout.REVISION: str(revision)}
        item["status"] = {"replicas": 0, "observedGeneration": 1}
        sets.append(item)
    assert [rollout.revision_of(item) for item in rollout.surplus_history(deployment, sets)] == [1, 2]
