"""Leader election is safe: a Lease is taken over only by who has seen its latest version, so there is one winner."""

import asyncio

from tests.contract.client import Object
from tests.contract.manifests import lease
from tests.contract.space import Space

NOW = "2026-01-02T03:04:05.678901Z"


async def test_microseconds_of_the_times_are_kept(space: Space, name: str) -> None:
    made = (await space.create("leases", lease(name, "me", acquireTime=NOW, renewTime=NOW, leaseTransitions=0))).ok(201)
    assert made["spec"] == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "acquireTime": NOW,
        "renewTime": NOW,
        "leaseTransitions": 0,
    }


async def test_lease_is_created_by_exactly_one_candidate(space: Space, name: str) -> None:
    answers = await asyncio.gather(*(space.create("leases", lease(name, f"candidate-{n}")) for n in range(8)))
    winners = [answer.body["spec"]["holderIdentity"] for answer in answers if answer.status == 201]
    assert len(winners) == 1
    assert (await space.get("leases", name)).ok(200)["spec"]["holderIdentity"] == winners[0]
    for answer in answers:
        if answer.status != 201:
            answer.refused(409, "AlreadyExists")


async def test_expired_lease_is_taken_over_by_one_candidate(space: Space, name: str) -> None:
    expired = (await space.create("leases", lease(name, "former"))).ok(201)

    def taken_by(candidate: str) -> Object:
        return expired | {"spec": expired["spec"] | {"holderIdentity": candidate, "renewTime": NOW}}

    answers = await asyncio.gather(*(space.replace("leases", taken_by(f"candidate-{n}")) for n in range(8)))
    winners = [answer.body["spec"]["holderIdentity"] for answer in answers if answer.status == 200]
    assert len(winners) == 1
    assert (await space.get("leases", name)).ok(200)["spec"]["holderIdentity"] == winners[0]
    for answer in answers:
        if answer.status != 200:
            answer.refused(409, "Conflict")
