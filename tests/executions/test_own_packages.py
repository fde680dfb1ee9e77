"""What a person installs with pip in a workspace: with a real Python, a real pip and a virtual environment in the place of an image."""

import subprocess
import venv
from pathlib import Path

import pip
import pytest

from grid.executions import own_packages
from tests.support.wheels import wheel

pytestmark = pytest.mark.slow


class Container:
    """An image with a package of version 1, and a home."""

    def __init__(self, folder: Path) -> None:
        self.image, self.home, self.wheels = folder / "image", folder / "home", folder / "wheels"
        venv.create(self.image, symlinks=True, with_pip=False)
        self.site = next(self.image.glob("lib/python3*/site-packages"))
        (self.site / "pip").symlink_to(Path(pip.__file__).parent)
        self.hook = folder / "python"
        self.hook.mkdir()
        (self.hook / "sitecustomize.py").write_text(Path(own_packages.__file__).read_text())
        self.run("-m", "pip", "install", "--no-index", str(wheel(self.wheels, "shared", "1")), keeps=False)
        assert (self.site / "shared.py").exists()

    def run(self, *arguments: str, keeps: bool = True, python: str = "") -> str:
        """Return what a Python of the container says, also when it fails."""
        variables = {
            "HOME": str(self.home),
            "PATH": f"{self.image}/bin:/usr/bin:/bin",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }
        if keeps:
            variables |= {"PYTHONPATH": str(self.hook), "GRID_PACKAGES_PATH": str(self.home / ".local/grid/lab")}
        command = [python or str(self.image / "bin" / "python"), *arguments]
        done = subprocess.run(command, env=variables, cwd=self.wheels, capture_output=True, text=True, timeout=60)
        return done.stdout + done.stderr

    def install(self, *what: str, python: str = "") -> str:
        options = ("--no-index", "--find-links", str(self.wheels))
        return self.run("-m", "pip", "install", *options, *what, python=python)

    def version(self, name: str, *options: str) -> str:
        return self.run(*options, "-c", f"import {name}; print({name}.VERSION)").strip()


@pytest.fixture
def container(tmp_path: Path) -> Container:
    return Container(tmp_path)


def test_package_goes_to_home_and_next_python_imports_it(container: Container) -> None:
    container.install(str(wheel(container.wheels, "mine", "1", needs="shared", program=True)))
    assert container.version("mine") == "1"
    assert list(container.home.glob(".local/grid/lab/lib/python3*/site-packages/mine.py"))
    assert [path.name for path in container.site.glob("mine*")] == []
    # The image's package was enough.
    assert not list(container.home.rglob("shared.py"))
    assert container.run("-c", "import subprocess; print(subprocess.getoutput('mine'))").strip() == "1"


def test_the_ides_server_sees_no_package_of_the_users(container: Container) -> None:
    container.install(str(wheel(container.wheels, "shared", "2")), str(wheel(container.wheels, "mine", "1")))
    assert (container.version("shared"), container.version("shared", "-s")) == ("2", "1")
    assert "ModuleNotFoundError" in container.version("mine", "-s")


def test_upgrade_leaves_image_packages_alone_and_can_be_undone(container: Container) -> None:
    wheel(container.wheels, "shared", "2")
    container.install("--upgrade", "shared")
    assert (container.version("shared"), (container.site / "shared.py").read_text()[:13]) == ("2", "VERSION = '1'")
    container.run("-m", "pip", "uninstall", "--yes", "shared")
    assert container.version("shared") == "1"


def test_the_images_packages_cannot_be_removed(container: Container) -> None:
    assert "outside environment" in container.run("-m", "pip", "uninstall", "--yes", "shared")
    assert container.version("shared") == "1"


def test_own_virtual_environment_is_left_alone(container: Container) -> None:
    own = container.home / "own"
    venv.create(own, symlinks=True, with_pip=False)
    site = next(own.glob("lib/python3*/site-packages"))
    (site / "pip").symlink_to(Path(pip.__file__).parent)
    container.install(str(wheel(container.wheels, "mine", "1")), python=str(own / "bin" / "python"))
    assert (site / "mine.py").exists()
    assert not (container.home / ".local").exists()


def test_a_customisation_of_the_images_own_still_runs(container: Container) -> None:
    (container.site / "sitecustomize.py").write_text("import sys\nsys.customised = True\n")
    assert container.run("-c", "import sys; print(sys.customised)").strip() == "True"
