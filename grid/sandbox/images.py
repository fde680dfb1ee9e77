"""The catalogue of the embedded cluster's container images: a name stands for Python requirements, and a TOML file adds to it."""

import hashlib
import json
import sys
import tomllib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from grid.sandbox.needs import Need
from grid.sandbox.nodeprograms import NodeProgram

# Increased when another environment is made of the same requirements.
_RECIPE = 3


class BadCatalogue(ValueError):
    """The catalogue's file cannot be used; the message says where and why."""


@dataclass(frozen=True, slots=True)
class Image:
    """A catalogue entry. `command` runs when a container names none."""

    name: str
    requirements: tuple[str, ...]
    description: str
    command: tuple[str, ...] = ()
    needs: tuple[Need, ...] = ()
    node_program: NodeProgram | None = None
    base: "Image | None" = None  # to which the requirements are added

    @property
    def digest(self) -> str:
        """A hash of all that determines the environment: the recipe, the image's name, the requirements and the Python."""
        parts = [_RECIPE, self.name, self.requirements, sys.version_info[:3], sys.base_prefix]
        parts += [asdict(self.node_program)] if self.node_program else []
        identity = json.dumps([*parts, "on", self.base.digest] if self.base else parts)
        return hashlib.sha256(identity.encode()).hexdigest()

    @property
    def id(self) -> str:
        return f"{self.name.rpartition(':')[0] or self.name}@sha256:{self.digest}"


_JAVA = Need("java", "Spark needs Java 17: install openjdk-17-jre-headless (Debian) and pull again", 17)
_NODE = "VS Code needs Node.js 20 or later with npm: install them and pull again"
_BUILDS = "VS Code’s terminal is compiled: install g++ and make (Debian: build-essential) and pull again"
_VS_CODE_NEEDS = (Need("node", _NODE, 20), Need("npm", _NODE), Need("g++", _BUILDS), Need("make", _BUILDS))
_CODE_SERVER = NodeProgram(
    "code-server@4.100.3",  # the newest for Node.js 20
    "code-server",
    inner="code-server/lib/vscode",
    builds=(
        "node-pre-gyp rebuild -C node_modules/argon2",
        "node-gyp rebuild -C node_modules/code-server/lib/vscode/node_modules/node-pty",
        "node-gyp rebuild -C node_modules/code-server/lib/vscode/node_modules/@vscode/spdlog",
        "node-gyp rebuild -C node_modules/code-server/lib/vscode/node_modules/native-watchdog",
    ),
)
_JUPYTERLAB = ("jupyterlab==4.6.*", "ipykernel>=6.29", "jupyter-server-terminals>=0.5", "terminado>=0.18", "pip>=24")
BUILT_IN = (
    Image("compute-grid/jupyterlab:4.6", _JUPYTERLAB, "JupyterLab with a Python kernel and terminals"),
    Image(
        "compute-grid/datascience:1",
        (*_JUPYTERLAB, "pandas>=2.2,<4", "scikit-learn>=1.5,<2", "matplotlib>=3.9,<4"),
        "JupyterLab with pandas, scikit-learn and matplotlib",
    ),
    Image(
        "compute-grid/dask:2026.8",
        (*_JUPYTERLAB, "dask[complete]==2026.8.0", "prometheus-client>=0.20"),
        "Dask: its scheduler and workers, and JupyterLab with Dask, NumPy, pandas and PyArrow",
    ),
    Image(
        "compute-grid/spark:4.3",
        (*_JUPYTERLAB, "pyspark==4.3.0", "pandas>=2.2,<3", "pyarrow>=18"),
        "Spark: its workers, and JupyterLab with PySpark, pandas and PyArrow",
        needs=(_JAVA,),
    ),
    Image(
        "compute-grid/ray:2.60",
        (*_JUPYTERLAB, "ray[default,client]==2.60.0", "pandas>=2.2,<3"),
        "Ray: its nodes, and JupyterLab with Ray and pandas",
    ),
    Image(
        "compute-grid/code-server:4.100",
        ("pip>=24", "ipykernel>=6.29"),
        "VS Code in the browser (code-server), with Python",
        needs=_VS_CODE_NEEDS,
        node_program=_CODE_SERVER,
    ),
    Image(
        "compute-grid/executor:1",
        (),
        "Fetches project files from Git, and saves what changed",
        # A container's first process does not end by a signal that it does not catch yet (pid_namespaces(7)); this one would, while Python
        # starts, and save nothing.
        ("sh", "-c", 'trap "" TERM && exec python3 "$0" "$@"', str(Path(__file__).parents[1] / "files" / "executor")),
        (Need("git", "Project files in Git need the program git: install it and pull again"),),
    ),
    Image(
        "compute-grid/nginx:1",
        (),
        "nginx, in front of the web servers of workspaces and apps",
        ("nginx",),
        (Need("nginx", "The front of workspaces and apps is nginx: install it (Debian: nginx-light) and pull again"),),
    ),
    Image("registry.k8s.io/pause:3.10", (), "Does nothing, for placeholders", ("sleep", "infinity")),
    Image("compute-grid/python:3.11", (), "Python and nothing else", ("python3",)),
    Image("compute-grid/test:1", (), "For tests: nothing to install", ("python3", "-c", "print('hello')")),
    Image("compute-grid/test-sleep:1", (), "For tests: sleeps an hour", ("sleep", "3600")),
)


class ImageCatalogue:
    """All images that can be pulled."""

    def __init__(self, images: Iterable[Image] = BUILT_IN) -> None:
        self._images = {image.name: image for image in images}

    @classmethod
    def with_file(cls, path: Path) -> "ImageCatalogue":
        """Return the built-in images and those of a TOML file; an image of the same name replaces the built-in one.

        [images."team/polars:1"]
        requirements = ["polars==1.*", "ipykernel"]
        description = "Polars"
        needs = [{ program = "dot", version = 2, advice = "Install graphviz and pull again" }]
        """
        try:
            document = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise BadCatalogue(f"image catalogue {path}: {error}") from error
        entries = document.get("images", {})
        if not isinstance(entries, dict):
            raise BadCatalogue(f'image catalogue {path}: “images” must be tables like [images."name:tag"]')
        return cls([*BUILT_IN, *(_entry(path, name, entry) for name, entry in entries.items())])

    def find(self, name: str) -> Image | None:
        """Return the entry of an image name as a pod spells it: `docker.io/` in front and `:latest` behind may be omitted, and it may be
        the digest that the kubelet tells."""
        return (
            self._images.get(name)
            or self._images.get(name.removeprefix("docker.io/"))
            or self._images.get(f"{name}:latest")
            or next((image for image in self._images.values() if "@" in name and image.id == name), None)
        )

    def names(self) -> list[str]:
        return sorted(self._images)

    def images(self) -> list[Image]:
        return list(self._images.values())


def _entry(path: Path, name: str, entry: object) -> Image:
    where = f'image catalogue {path}: [images."{name}"]'
    if not isinstance(entry, dict):
        raise BadCatalogue(f"{where} must be a table")
    unknown = entry.keys() - {"requirements", "description", "command", "needs"}
    if unknown:
        raise BadCatalogue(f"{where}: unknown key “{sorted(unknown)[0]}”")
    requirements, command = entry.get("requirements", []), entry.get("command", [])
    for key, value in (("requirements", requirements), ("command", command)):
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise BadCatalogue(f"{where}: {key} must be a list of texts")
    bad = [item for item in requirements if item.lstrip().startswith("-")]
    if bad:
        raise BadCatalogue(f"{where}: “{bad[0]}” is an option of the installer, not a requirement")
    needs = tuple(_need(where, need) for need in _tables(where, entry.get("needs", [])))
    return Image(name, tuple(requirements), str(entry.get("description", "")), tuple(command), needs)


def _tables(where: str, value: object) -> list[dict[str, object]]:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise BadCatalogue(f"{where}: needs must be a list of tables")
    return value


def _need(where: str, entry: dict[str, object]) -> Need:
    unknown = entry.keys() - {"program", "advice", "version"}
    if unknown:
        raise BadCatalogue(f"{where}: unknown key “{sorted(unknown)[0]}” in needs")
    program, version = entry.get("program"), entry.get("version", 0)
    if not isinstance(program, str) or not program or "/" in program:
        raise BadCatalogue(f"{where}: a need must name its program, without a folder")
    if not isinstance(version, int):
        raise BadCatalogue(f"{where}: the version of “{program}” must be a whole number")
    return Need(
        program, str(entry.get("advice") or f"It needs the program {program}: install it and pull again"), version
    )
