"""The cluster under test, a client for it, and a namespace with a random name for each file of promises.

`CONTRACT_KUBECONFIG=FILE` chooses the cluster; without it the embedded cluster is started. The credentials must be allowed
to create namespaces. Nothing outside the suite's own namespaces is written. `CONTRACT_COMPACT=COMMAND` is a shell command
that makes the chosen cluster forget its history before `$VERSION`; without it the promises about that are skipped.
"""

import os
import re
import secrets
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.contract.client import Client
from tests.contract.embedded import EmbeddedCluster
from tests.contract.kubeconfig import Connection, read_kubeconfig
from tests.contract.manifests import metadata, pod
from tests.contract.space import Space
from tests.support.waiting import eventually

MakeSpace = Callable[[], Awaitable[Space]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = f"{Path(__file__).parent}{os.sep}"  # of ten thousand tests, so nothing slow
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.contract)


@pytest.fixture(scope="session")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster | None]:
    """The embedded cluster, unless another one is chosen."""
    if os.environ.get("CONTRACT_KUBECONFIG"):
        yield None
        return
    cluster = EmbeddedCluster(tmp_path_factory.mktemp("embedded-cluster"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="session")
def connection(embedded: EmbeddedCluster | None) -> Connection:
    return read_kubeconfig(chosen_kubeconfig(embedded))


def chosen_kubeconfig(embedded: EmbeddedCluster | None) -> Path:
    return embedded.kubeconfig if embedded else Path(os.environ["CONTRACT_KUBECONFIG"])


@pytest.fixture
def reaches_us(connection: Connection) -> None:
    """Skips the test where the server cannot call what it serves on loopback."""
    if not any(here in connection.server for here in ("//127.", "//localhost", "//[::1]")):
        pytest.skip("the server under test is on another machine and does not reach what this one serves")


@pytest.fixture(scope="session")
def forget_history(embedded: EmbeddedCluster | None) -> Callable[[str], None]:
    """Makes the cluster forget what was before a version."""

    def forget(version: str) -> None:
        if embedded:
            embedded.restart()
        elif command := os.environ.get("CONTRACT_COMPACT"):
            subprocess.run(command, shell=True, check=True, capture_output=True, env=os.environ | {"VERSION": version})
        else:
            pytest.skip(
                "only its operator makes this cluster forget: set CONTRACT_COMPACT to a command that compacts $VERSION"
            )

    return forget


@pytest_asyncio.fixture
async def client(connection: Connection) -> AsyncIterator[Client]:
    async with Client.connected(connection) as client:
        yield client


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def namespace(connection: Connection) -> AsyncIterator[str]:
    async with Client.connected(connection) as client:
        made = await create_namespace(client)
        yield made
        await remove_namespace(client, made)


@pytest.fixture
def space(client: Client, namespace: str) -> Space:
    """The namespace that the tests of one file share: use names from `name`, and labels of your own."""
    return Space(client, namespace)


@pytest.fixture
def cluster(client: Client) -> Space:
    """Cluster-scoped resources, and lists across all namespaces."""
    return Space(client, "")


@pytest_asyncio.fixture
async def new_space(client: Client) -> AsyncIterator[MakeSpace]:
    """Makes namespaces for one test alone, for promises about a whole namespace."""
    made: list[str] = []

    async def make() -> Space:
        made.append(await create_namespace(client))
        return Space(client, made[-1])

    yield make
    for namespace in made:
        await remove_namespace(client, namespace)


@pytest.fixture
def name() -> str:
    """A name that no other test uses."""
    return f"t{secrets.token_hex(4)}"


@pytest_asyncio.fixture
async def version(client: Client) -> tuple[int, int]:
    """Major and minor version that the server claims: behaviour that came with a version is asked for only from it on."""
    info = (await client.request("GET", "/version")).ok()
    return int(info["major"]), int(re.sub(r"\D.*", "", info["minor"]))


async def create_namespace(client: Client) -> str:
    name = f"contract-{secrets.token_hex(4)}"
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata(name)}
    (await Space(client, "").create("namespaces", manifest)).ok(201)
    space = Space(client, name)

    async def pods_are_admitted() -> bool:
        # Right after its creation a namespace has no service account yet, and admits no pod without one.
        return (await space.create("pods", pod("probe"), dryRun="All")).status == 201

    await eventually(pods_are_admitted, f"namespace {name} should admit pods")
    return name


async def remove_namespace(client: Client, name: str) -> None:
    space = Space(client, name)
    # A bound pod waits for a kubelet's word that it ended, and no kubelet knows ours: they go without grace.
    await space.delete("pods", options={"gracePeriodSeconds": 0})
    # A test that failed half-way may have left an object held by a finalizer, which would hold the namespace for ever.
    for resource in ("configmaps", "pods"):
        for left in (await space.listing(resource)).ok()["items"]:
            if left["metadata"].get("finalizers"):
                await space.patch(resource, left["metadata"]["name"], {"metadata": {"finalizers": None}})
    await Space(client, "").delete("namespaces", name)
