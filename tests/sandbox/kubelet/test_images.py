"""Images: a name stands for requirements, and pulling makes a virtual environment once."""

import asyncio
import logging
import os
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from grid.sandbox.images import BUILT_IN, BadCatalogue, Image, ImageCatalogue
from grid.sandbox.imagestore import ImageStore, PullFailed, installer_environment
from grid.sandbox.needs import Need
from grid.sandbox.nodeprograms import NodeProgram
from tests.sandbox.kubelet.support import World, only_wheels_of, pod
from tests.support.waiting import eventually
from tests.support.wheels import wheel

TINY = Image("team/tiny:1", ("tiny==1.0",), "One module", ("python3", "-c", "import tiny; print(tiny.VERSION)"))


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that stands for the package index, with one tiny wheel; there is no other."""
    wheel(tmp_path / "wheels", "tiny", "1.0")
    only_wheels_of(tmp_path / "wheels", monkeypatch)


def store(tmp_path: Path) -> ImageStore:
    return ImageStore(tmp_path / "images", ImageCatalogue([*BUILT_IN, TINY]))


def test_the_image_of_placeholders_is_in_the_catalogue(settings: Settings) -> None:
    assert ImageCatalogue().find(settings.PLACEHOLDER_IMAGE) is not None


async def test_pulled_image_has_its_requirements_and_is_made_once(
    tmp_path: Path, index: None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    # Two stores on one directory are what two processes are: only the lock file stands between them.
    results = await asyncio.gather(*(store(tmp_path).pull("team/tiny:1") for _ in range(3)))
    places = {pulled.environment for pulled, _ in results}
    assert len(places) == 1
    assert len([record for record in caplog.records if "made in" in record.getMessage()]) == 1
    python = places.pop() / "bin" / "python3"
    process = await asyncio.create_subprocess_exec(
        python, "-c", "import tiny; print(tiny.VERSION)", stdout=asyncio.subprocess.PIPE
    )
    assert (await process.communicate())[0] == b"1.0\n"
    assert results[0][0].size_bytes > 0


async def test_cancelled_pull_ends_installer_and_is_repeatable(tmp_path: Path, index: None) -> None:
    images = store(tmp_path)
    pulling = asyncio.create_task(images.pull("team/tiny:1"))
    await eventually(lambda: (images._place(TINY) / "pyvenv.cfg").exists())
    pulling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await pulling
    assert images.present("team/tiny:1") is None
    await images.pull("team/tiny:1")
    assert images.present("team/tiny:1")


async def test_unwritable_folder_is_a_failed_pull(tmp_path: Path) -> None:
    (tmp_path / "images").write_text("a file, not a folder")
    with pytest.raises(PullFailed, match="cannot store image"):
        await store(tmp_path).pull("compute-grid/test:1")


def image_that_needs(program: str, version: int = 0) -> ImageCatalogue:
    need = Need(program, f"Install {program} and pull again", version)
    return ImageCatalogue([Image("team/needy:1", (), "", needs=(need,))])


def program(folder: Path, name: str, script: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program on the PATH of the cluster's process."""
    folder.mkdir()
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder / name


async def test_missing_program_is_reported_before_installation(tmp_path: Path) -> None:
    images = ImageStore(tmp_path / "images", image_that_needs("no-such-program"))
    with pytest.raises(PullFailed, match=r"^Install no-such-program and pull again$"):
        await images.pull("team/needy:1")
    assert list((tmp_path / "images").glob("*/*")) == []


@pytest.mark.parametrize("script", ["echo v11.0.2", "echo unknown option; exit 1", "echo no number"])
async def test_a_program_that_is_too_old_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    place = program(tmp_path / "bin", "oldjava", script, monkeypatch)
    images = ImageStore(tmp_path / "images", image_that_needs("oldjava", 17))
    with pytest.raises(PullFailed, match=f"^Install oldjava and pull again .this machine's {place} is"):
        await images.pull("team/needy:1")


async def test_containers_find_a_needed_program_wherever_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = program(tmp_path / "elsewhere", "newjava", "echo openjdk 17.0.15 2025-04-15", monkeypatch)
    pulled, _ = await ImageStore(tmp_path / "images", image_that_needs("newjava", 17)).pull("team/needy:1")
    assert (pulled.environment / "bin" / "newjava").readlink() == place


async def test_npm_program_is_installed_without_scripts_and_linked(
    tmp_path: Path, index: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "said"
    script = f"""echo "$(basename $PWD) $@ $SECRET_OF_OURS" >> {log}
mkdir -p node_modules/.bin node_modules/ide/lib && echo > node_modules/.bin/ide"""
    program(tmp_path / "bin", "npm", script, monkeypatch)
    monkeypatch.setenv("SECRET_OF_OURS", "hidden")
    ide = NodeProgram("ide@1", "ide", inner="ide/lib", builds=("node-gyp rebuild",))
    images = ImageStore(tmp_path / "images", ImageCatalogue([Image("team/ide:1", (), "", node_program=ide)]))
    pulled, _ = await images.pull("team/ide:1")
    assert (pulled.environment / "bin" / "ide").resolve().exists()
    quiet = "--no-audit --no-fund --no-update-notifier --loglevel=error"
    assert log.read_text().splitlines() == [
        f"node install {quiet} --ignore-scripts ide@1 ",
        f"lib install {quiet} --omit=dev --ignore-scripts ",
        f"node exec {quiet} --offline -c node-gyp rebuild ",
    ]


async def test_pod_with_unknown_image_waits_and_lists_images(world: World) -> None:
    await world.run(pod("typo", "echo hi", container={"image": "compute-grid/jupyterlap:4.6"}))
    waiting = (await world.reason("typo", "ErrImagePull"))["state"]["waiting"]
    assert "is not in the catalogue" in waiting["message"]
    assert "compute-grid/jupyterlab:4.6" in waiting["message"]
    waiting = (await world.reason("typo", "ImagePullBackOff"))["state"]["waiting"]
    assert waiting["message"].startswith('Back-off pulling image "compute-grid/jupyterlap:4.6": ErrImagePull: image')
    assert list(world.api.messages("typo", "Failed"))[1:] == ["Error: ErrImagePull", "Error: ImagePullBackOff"]
    assert world.api.status("typo")["phase"] == "Pending"
    world.clock.jump(10)
    await eventually(lambda: world.api.events("typo", "Pulling")[0]["count"] == 2, "it is tried again")


def test_a_file_adds_to_the_catalogue_and_may_replace(tmp_path: Path) -> None:
    file = tmp_path / "images.toml"
    file.write_text(
        '[images."team/polars:1"]\nrequirements = ["polars==1.*"]\ndescription = "Polars"\n'
        'needs = [{ program = "dot", version = 2, advice = "Install graphviz" }, { program = "git" }]\n'
        '[images."compute-grid/test:1"]\nrequirements = []\n'
    )
    catalogue = ImageCatalogue.with_file(file)
    image = catalogue.find("docker.io/team/polars:1")
    assert image is not None
    assert (image.requirements, image.description) == (("polars==1.*",), "Polars")
    assert image.needs == (
        Need("dot", "Install graphviz", 2),
        Need("git", "It needs the program git: install it and pull again"),
    )
    assert len(catalogue.names()) == len(BUILT_IN) + 1


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[images", "images.toml"),
        ('[images."a:1"]\nrequirements = ["--index-url=http://x"]', "is an option of the installer"),
        ('[images."a:1"]\nrequirments = []', "unknown key “requirments”"),
        ('[images."a:1"]\nneeds = [{ version = 17 }]', "a need must name its program"),
        ('[images."a:1"]\nneeds = [{ program = "/bin/java" }]', "without a folder"),
        ("images = 3", "must be tables"),
    ],
)
def test_a_bad_catalogue_file_says_where_and_why(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "images.toml"
    file.write_text(text)
    with pytest.raises(BadCatalogue, match=problem):
        ImageCatalogue.with_file(file)


def test_the_installer_sees_proxies_and_its_own_settings_only() -> None:
    environment = {
        "PATH": "/bin",
        "PIP_INDEX_URL": "i",
        "https_proxy": "p",
        "HTTP_PROXY": "p",
        "SSL_CERT_FILE": "c",
        "GRID_SECRET_KEY": "secret",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "PYTHONPATH": "/x",
    }
    wanted = {"PATH", "PIP_INDEX_URL", "https_proxy", "HTTP_PROXY", "SSL_CERT_FILE"}
    assert set(installer_environment(environment)) == wanted
