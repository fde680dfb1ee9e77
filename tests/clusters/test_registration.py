"""The cluster's external metrics: registered while our web processes answer, and never a day longer."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from grid.clusters.registration import (
    LOOK_SECONDS,
    NAME,
    OFF_SECONDS,
    OWNER,
    PATIENCE,
    REST_SECONDS,
    Registration,
    api_service,
    ask_servers,
)
from grid.kube.objects import RawObject
from grid.kube.resources import API_SERVICES, CLUSTER_ROLES
from grid.metrics.external import Authority, ServiceReference
from tests.contract.aggregated import hang_up
from tests.support.cluster import FakeCluster
from tests.support.virtual import cancelled, loop_time, passes, repeat, virtual_time

SERVICE = ServiceReference("demand", "compute-grid-system", 443)
AUTHORITY = Authority("a secret of the tests")
SILENT = "https://demand.compute-grid-system.svc:443/healthz does not answer in time."


class Place:
    """A cluster, and web processes that answer or not."""

    def __init__(self, *, is_on: bool = True) -> None:
        self.cluster = FakeCluster()
        self.problem = ""
        self.registration = Registration(self.cluster, SERVICE, AUTHORITY, self.ask, is_on=is_on, monotonic=loop_time)

    async def ask(self) -> str:
        return self.problem

    def is_registered(self) -> bool:
        return bool(self.cluster.objects(API_SERVICES))

    def registered(self) -> RawObject:
        (current,) = self.cluster.objects(API_SERVICES)
        return current

    def put(self, **changes: Any) -> None:
        """What is registered already."""
        self.cluster.put(API_SERVICES, api_service(SERVICE, AUTHORITY) | changes)

    def available(self, status: str, message: str = "") -> None:
        """What the API server says of it."""
        current = self.registered()
        condition = {"type": "Available", "status": status, "reason": "FailedDiscoveryCheck", "message": message}
        self.cluster.put(API_SERVICES, current | {"status": {"conditions": [condition]}})

    async def looks(self, times: int) -> None:
        for _ in range(times):
            await self.registration.run_once()


async def test_registration_exists_once_the_web_processes_answer() -> None:
    place = Place()
    place.problem = SILENT
    await place.looks(5)
    assert not place.is_registered()
    place.problem = ""
    await place.looks(1)
    spec = place.registered()["spec"]
    assert spec["caBundle"] == AUTHORITY.bundle
    assert spec["service"] == {"name": "demand", "namespace": "compute-grid-system", "port": 443}
    assert "insecureSkipTLSVerify" not in spec


async def test_registration_goes_after_silence_in_a_row_and_comes_again() -> None:
    place = Place()
    await place.looks(1)
    for silences, stays in ((PATIENCE - 1, True), (PATIENCE - 1, True), (PATIENCE, False)):
        place.problem = SILENT
        await place.looks(silences)
        assert place.is_registered() is stays
        place.problem = ""
        await place.looks(1)
        assert place.is_registered()


@virtual_time
async def test_registration_blocked_for_api_server_alone_goes_and_rests() -> None:
    place = Place()
    await place.looks(1)
    place.available("False", 'Get "https://10.0.0.1:8443": context deadline exceeded')
    await place.looks(PATIENCE)
    assert not place.is_registered()
    await passes(REST_SECONDS - 1)
    await place.looks(1)
    assert not place.is_registered()
    await passes(2)
    await place.looks(1)
    assert place.is_registered()
    place.available("True")
    await place.looks(PATIENCE)
    assert place.is_registered()


@pytest.mark.parametrize(("problem", "is_on"), [("", True), (SILENT, True), (SILENT, False)])
async def test_registration_of_another_program_is_left_and_reported_once(
    problem: str, is_on: bool, caplog: pytest.LogCaptureFixture
) -> None:
    place = Place(is_on=is_on)
    place.problem = problem
    keda = {"group": "external.metrics.k8s.io", "service": {"name": "keda", "namespace": "keda", "port": 443}}
    place.put(metadata={"name": NAME}, spec=keda)
    await place.looks(2 * PATIENCE)
    assert place.registered()["spec"] == keda
    assert caplog.text.count("another program serves external metrics") == is_on
    assert ("keda/keda" in caplog.text) == is_on


async def test_older_registration_of_our_service_gets_a_bundle() -> None:
    place = Place()
    spec = {key: value for key, value in api_service(SERVICE, AUTHORITY)["spec"].items() if key != "caBundle"}
    place.put(metadata={"name": NAME}, spec=spec | {"insecureSkipTLSVerify": True})
    await place.looks(1)
    assert place.registered()["spec"] == api_service(SERVICE, AUTHORITY)["spec"]
    version = place.registered()["metadata"]["resourceVersion"]
    await place.looks(3)
    assert place.registered()["metadata"]["resourceVersion"] == version, "nothing is left to change"


async def test_registration_is_owned_by_its_role() -> None:
    place = Place()
    role = place.cluster.put(CLUSTER_ROLES, {"kind": "ClusterRole", "metadata": {"name": OWNER}})
    await place.looks(1)
    (owner,) = place.registered()["metadata"]["ownerReferences"]
    assert owner["uid"] == role["metadata"]["uid"]
    assert "blockOwnerDeletion" not in owner


@virtual_time
async def test_registration_goes_with_its_leader() -> None:
    place = Place()
    task = asyncio.create_task(repeat(place.registration.periodic()))
    await passes(1)
    assert place.is_registered()
    await cancelled(task)
    assert not place.is_registered()


@virtual_time
async def test_disabled_registration_is_removed_and_then_left_alone() -> None:
    place = Place(is_on=False)
    place.put()
    assert await place.registration.run_once() == OFF_SECONDS
    assert not place.is_registered()
    place.cluster.forbidden[API_SERVICES] = "apiservices is forbidden"
    assert await place.registration.run_once() == OFF_SECONDS


@virtual_time
async def test_outage_and_missing_right_are_outlived(caplog: pytest.LogCaptureFixture) -> None:
    place = Place()
    place.cluster.available = False
    task = asyncio.create_task(repeat(place.registration.periodic()))
    await passes(5 * LOOK_SECONDS)
    place.cluster.available = True
    place.cluster.forbidden[API_SERVICES] = "apiservices is forbidden"
    await passes(5 * LOOK_SECONDS)
    assert caplog.text.count("apply deploy/external-metrics.yaml") == 1
    place.cluster.forbidden.clear()
    await passes(LOOK_SECONDS)
    assert place.is_registered()
    await cancelled(task)


# --- Asking the web processes


@pytest.fixture
async def serve(tmp_path: Path) -> AsyncIterator[Callable[..., Any]]:
    """Starts something that listens where the Service leads to, with a certificate of `authority` and what it says."""
    runners: list[web.AppRunner] = []

    async def started(authority: Authority, host: str, status: int = 200, text: str = "{}") -> ServiceReference:
        async def answer(request: web.Request) -> web.Response:
            return web.Response(status=status, text=text)

        path = tmp_path / "tls.pem"
        path.write_text(authority.issue(host, now=datetime.now(UTC)))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        app = web.Application()
        app.router.add_get("/healthz", answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        runners.append(runner)
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        return ServiceReference("demand", "compute-grid-system", int(runner.addresses[0][1]))

    yield started
    for runner in runners:
        await hang_up(runner)
        await runner.cleanup()


async def test_our_own_servers_are_known_by_their_certificate(serve: Any) -> None:
    assert await ask_servers(await serve(AUTHORITY, SERVICE.host), AUTHORITY, address="127.0.0.1") == ""


@pytest.mark.parametrize(
    ("authority", "host"), [(Authority("another"), SERVICE.host), (AUTHORITY, "other.compute-grid-system.svc")]
)
async def test_other_server_at_the_address_is_not_trusted(serve: Any, authority: Authority, host: str) -> None:
    service = await serve(authority, host)
    assert "certificate verify failed" in await ask_servers(service, AUTHORITY, address="127.0.0.1")


async def test_a_server_that_is_not_ready_says_why(serve: Any) -> None:
    service = await serve(AUTHORITY, SERVICE.host, 503, "It is not known how the API server proves itself.")
    sentence = await ask_servers(service, AUTHORITY, address="127.0.0.1")
    assert "answers 503: It is not known how the API server proves itself." in sentence
