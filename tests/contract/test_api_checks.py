"""The checks that admins run from the dashboard, on the cluster under test: each passes, nothing is left, and rights are told."""

import secrets
import time
from collections.abc import AsyncIterator

import pytest_asyncio

from grid.kube.credentials import CredentialSource
from grid.kube.http import HttpKubeApi
from grid.platformhealth.apicheckresults import ApiCheckResult
from grid.platformhealth.apichecks.checks import CHECKS
from grid.platformhealth.apichecks.running import run_checks
from grid.platformhealth.apichecks.scratch import Scratch, make_namespace, namespace_of, remove
from tests.contract.conftest import MakeSpace, chosen_kubeconfig
from tests.contract.embedded import EmbeddedCluster
from tests.contract.space import Space
from tests.support.waiting import eventually


@pytest_asyncio.fixture
async def api(embedded: EmbeddedCluster | None) -> AsyncIterator[HttpKubeApi]:
    api = HttpKubeApi(CredentialSource(str(chosen_kubeconfig(embedded))))
    yield api
    await api.close()


async def results_in(scratch: Scratch) -> list[ApiCheckResult]:
    results: list[ApiCheckResult] = []

    async def tell(result: ApiCheckResult) -> None:
        results.append(result)

    await run_checks(scratch, CHECKS, monotonic=time.monotonic, tell=tell)
    return results


async def test_checks_pass_in_own_namespace_that_is_removed(api: HttpKubeApi, cluster: Space) -> None:
    token = secrets.token_hex(4)
    scratch = Scratch(api, namespace_of("contract", token), token, "contract")
    await make_namespace(scratch)
    try:
        results = await results_in(scratch)
    finally:
        await remove(scratch)
    assert [(result.name, result.words) for result in results if result.outcome != "passed"] == []
    assert len(results) == len(CHECKS)
    answer = await cluster.get("namespaces", scratch.namespace)
    assert answer.status == 404 or answer.body["status"]["phase"] == "Terminating"


async def test_objects_in_shared_namespace_go_with_their_anchor(api: HttpKubeApi, new_space: MakeSpace) -> None:
    space, token = await new_space(), secrets.token_hex(4)
    scratch = Scratch(api, space.namespace, token, space.namespace)
    no_end = [
        check for check in CHECKS if check.key not in ("garbage", "bookmarks")
    ]  # as if it were killed before the end

    async def tell(result: ApiCheckResult) -> None:
        assert result.outcome == "passed", result

    await run_checks(scratch, no_end, monotonic=time.monotonic, tell=tell)
    await remove(scratch)

    async def all_gone() -> bool:
        kinds = ("pods", "deployments", "jobs", "services", "secrets", "poddisruptionbudgets", "leases", "replicasets")
        return not [name for kind in kinds for name in await space.names(kind, labelSelector=scratch.selector)]

    await eventually(all_gone, "all that the checks made should be gone")
    await remove(scratch)  # twice changes nothing
