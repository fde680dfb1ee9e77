"""What installs packages: uv with what pip is set up with, and pip where uv knows no counterpart."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from grid.sandbox.images import Image, ImageCatalogue
from grid.sandbox.imagestore import ImageStore, PullFailed
from grid.sandbox.installer import Settings, settings_for_uv, uv_command
from tests.sandbox.kubelet.support import only_wheels_of
from tests.support.wheels import wheel

TINY = Image("team/tiny:1", ("tiny==1.0",), "One module")
ABSENT = Image("team/absent:1", ("absent==2.0",), "Nothing that is there")
BEST = {"UV_INDEX_STRATEGY": "unsafe-best-match"}


@pytest.mark.parametrize(
    ("listed", "settings"),
    [
        ("", Settings([], BEST)),
        (
            "global.extra-index-url='\\nhttps://a/simple\\nhttps://b/simple'\nglobal.find-links='/one /two'",
            Settings([], {"UV_INDEX": "https://a/simple https://b/simple", "UV_FIND_LINKS": "/one,/two", **BEST}),
        ),
        (
            "global.index-url='https://old/simple'\ninstall.index-url='https://u:p@new/simple'\nglobal.no-color='1'",
            Settings([], {"UV_DEFAULT_INDEX": "https://u:p@new/simple", **BEST}),
        ),
        (
            ":env:.no-index='1'\nglobal.no-index='0'\nglobal.cert='/ca.crt'\nglobal.trusted-host='mirror'",
            Settings(["--no-index"], {"SSL_CERT_FILE": "/ca.crt", "UV_INSECURE_HOST": "mirror", **BEST}),
        ),
        ("freeze.all='1'", Settings([], BEST)),  # of another command of pip's
        ("global.only-binary=':all:'", None),
        ("install.target='/elsewhere'", None),
    ],
    ids=["nothing", "several places", "later section", "no index", "another command", "wheels only", "target"],
)
def test_uv_is_told_what_pip_is_set_up_with(listed: str, settings: Settings | None) -> None:
    assert settings_for_uv(listed) == settings


@pytest.fixture
def images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ImageStore:
    wheel(tmp_path / "wheels", "tiny", "1.0")
    only_wheels_of(tmp_path / "wheels", monkeypatch)
    return ImageStore(tmp_path / "images", ImageCatalogue([TINY, ABSENT]))


def module_of(place: Path) -> Path:
    (file,) = place.glob("lib/python3*/site-packages/tiny*.py")
    return file


async def test_images_share_the_files_that_uv_fetched_once(images: ImageStore, tmp_path: Path) -> None:
    pulled, _ = await images.pull(TINY.name)
    kept = [file for file in (tmp_path / "images" / "packages").rglob("tiny*.py") if file.is_file()]
    assert [file.samefile(module_of(pulled.environment)) for file in kept] == [True]


async def test_a_pull_that_uv_cannot_do_says_uvs_cause(images: ImageStore) -> None:
    with pytest.raises(PullFailed, match=r"Because absent was not found .* you require absent==2\.0"):
        await images.pull(ABSENT.name)


async def test_a_setting_that_uv_does_not_know_leaves_the_pull_to_pip(
    images: ImageStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_ONLY_BINARY", ":all:")
    assert uv_command(sys.executable, os.environ) is None
    pulled, _ = await images.pull(TINY.name)
    assert module_of(pulled.environment).exists()
    assert not (tmp_path / "images" / "packages").exists()


def test_program_says_in_pips_words_why_nothing_can_be_installed(tmp_path: Path) -> None:
    environment = {**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path), "PIP_CONFIG_FILE": os.devnull}
    command = [sys.executable, "-m", "grid.sandbox.installer", "absent==2.0"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "No matching distribution found for absent==2.0" in done.stderr
