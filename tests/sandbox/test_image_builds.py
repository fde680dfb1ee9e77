"""Images that are built on request: real environments on top of others, with their logs."""

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from grid.core.requirementlines import BUILT_HERE
from grid.sandbox.builtimages import BuildableCatalogue, CannotBuild
from grid.sandbox.control import Control
from grid.sandbox.imagebuilds import BuildAnswer, BuildOrder, ImageBuilds
from grid.sandbox.images import Image, ImageCatalogue
from grid.sandbox.imagestore import ImageStore
from grid.sandbox.population import Population, Size
from tests.sandbox.apiserver.conftest import Api
from tests.sandbox.kubelet.support import only_wheels_of
from tests.support.waiting import eventually
from tests.support.wheels import wheel

BASE = Image("team/base:1", ("first==1.0",), "A base")
NAME = f"{BUILT_HERE}lab:2-abc"


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in place of the package index."""
    folder = tmp_path / "wheels"
    wheel(folder, "first", "1.0", program=True)
    wheel(folder, "first", "2.0", program=True)
    wheel(folder, "second", "1.0")
    only_wheels_of(folder, monkeypatch)
    return folder


def store(tmp_path: Path) -> ImageStore:
    images = tmp_path / "images"
    return ImageStore(images, BuildableCatalogue(images, ImageCatalogue([BASE])))


@pytest.fixture
async def builds(tmp_path: Path, wheels: Path) -> AsyncIterator[ImageBuilds]:
    builds = ImageBuilds(store(tmp_path))
    yield builds
    await builds.stop()


def order(*requirements: str, name: str = NAME, base: str = BASE.name, seconds: float = 300.0) -> BuildOrder:
    return BuildOrder(name, base, requirements, seconds)


async def built(builds: ImageBuilds, asked: BuildOrder) -> BuildAnswer:
    await eventually(lambda: builds.ask(asked).state != "building")
    return builds.ask(asked)


def installers(folder: Path) -> list[psutil.Process]:
    processes = [(process, " ".join(process.info["cmdline"] or ())) for process in psutil.process_iter(["cmdline"])]
    return [process for process, line in processes if " pip " in line and str(folder) in line]


async def output_of(*argv: str | Path) -> str:
    process = await asyncio.create_subprocess_exec(*map(str, argv), stdout=asyncio.subprocess.PIPE)
    return (await process.communicate())[0].decode().strip()


@pytest.mark.slow
async def test_requirements_are_built_on_unchanged_base(builds: ImageBuilds, tmp_path: Path, wheels: Path) -> None:
    orders = [order("second"), order("first==2.0", name=f"{BUILT_HERE}lab:3-abc")]
    answers = await asyncio.gather(*(built(builds, asked) for asked in orders))  # two at once
    assert [answer.state for answer in answers] == ["ready", "ready"], answers
    assert "Successfully installed second-1.0" in answers[0].log
    assert 0 < answers[0].layer_bytes < answers[0].size_bytes
    images = store(tmp_path)  # as another process sees them
    places = [
        pulled.environment for pulled in map(images.present, [BASE.name, *(asked.name for asked in orders)]) if pulled
    ]
    assert [await output_of(place / "bin" / "first") for place in places] == ["1.0", "1.0", "2.0"]
    text = "import first, second, sys; print(sys.prefix, first.VERSION, second.VERSION)"
    assert await output_of(places[1] / "bin" / "python3", "-c", text) == f"{places[1]} 1.0 1.0"
    by_digest = images.present(f"{BUILT_HERE}lab@{answers[0].digest}")
    assert by_digest is not None
    assert by_digest.environment == places[1]
    again = await built(ImageBuilds(images), orders[0])  # after a restart of the process that has built it
    assert (again.state, again.log) == ("ready", answers[0].log)


@pytest.mark.slow
async def test_killed_installer_fails_the_build_without_image(
    builds: ImageBuilds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await built(builds, order("second", name=f"{BUILT_HERE}lab:1-abc"))  # so that the base is there
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.delenv("PIP_NO_INDEX")
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{silent.getsockname()[1]}/simple")
        builds.ask(order("second"))
        for process in await eventually(lambda: installers(tmp_path), "the installer runs"):
            process.kill()
        answer = await built(builds, order("second"))
    assert (answer.state, "SIGKILL" in answer.message) == ("failed", True), answer
    assert store(tmp_path).present(NAME) is None


@pytest.mark.slow
async def test_failed_build_keeps_its_log_and_can_be_repeated(builds: ImageBuilds, wheels: Path) -> None:
    failed = await built(builds, order("no-such-package"))
    assert failed.state == "failed"
    assert "No matching distribution found for no-such-package" in failed.message
    assert "no-such-package" in failed.log
    assert builds.ask(order("no-such-package")) == failed


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"name": "team/other:1"}, "no name"),
        ({"name": f"{BUILT_HERE}../x:1"}, "no name"),
        ({"base": "nowhere:1"}, "not in the catalogue"),
        ({"requirements": ("--index-url=https://evil.test",)}, "Options"),
        ({"requirements": ()}, "at least one"),
        ({"seconds": 1e9}, "takes up to"),
    ],
)
async def test_a_wrong_order_is_refused(tmp_path: Path, wrong: dict[str, object], why: str) -> None:
    values: dict[str, object] = {"name": NAME, "base": BASE.name, "requirements": ("second",), "seconds": 10.0}
    with pytest.raises(CannotBuild, match=why):
        ImageBuilds(store(tmp_path)).ask(BuildOrder(**(values | wrong)))  # type: ignore[arg-type]


async def test_the_cluster_is_asked_over_http(api: Api, tmp_path: Path) -> None:
    population = Population(api.server.registry, Size(0, 0), namespace="compute-grid")
    control = Control(api.server, population, ImageBuilds(store(tmp_path)))
    api.server.beside = control.answer
    wanted = {"name": NAME, "base": "nowhere:1", "requirements": ["second"]}
    answer = await api.ask("POST", "/sandbox/builds", wanted)
    assert (answer.status, "not in the catalogue" in answer.body["message"]) == (400, True)
    assert (await api.ask("POST", "/sandbox/builds", {"name": NAME})).status == 400
    begun = await api.ask("POST", "/sandbox/builds", wanted | {"base": BASE.name})
    assert (begun.status, begun.body["state"]) == (200, "building")
    await control.stop()
