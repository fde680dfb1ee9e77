"""Spark's two shell scripts, run for real with stand-ins for Spark and Java: starting, and the hook before a worker ends."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from grid.clusters.frameworks import framework
from grid.sandbox.kubelet.environment import expand_all
from grid.sandbox.kubelet.mounts import Mounts
from tests.clusters.cluster_specs import small_spec

SPARK = framework("spark")
HEAD = "10.96.0.7"


@dataclass
class Image:
    """A directory of programs, and nothing else on the PATH."""

    folder: Path

    def has(self, name: str, script: str = "") -> None:
        """A stand-in, or the machine's own."""
        if script:
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(f"#!/bin/sh\n{script}\n")
            (self.folder / name).chmod(0o755)
        else:
            (self.folder / name).symlink_to(str(shutil.which(name)))

    def start(self, *, project: Path = Path("/"), **variables: str) -> subprocess.CompletedProcess[str]:
        """`project` is the working directory."""
        environment = {"PATH": str(self.folder), "HOME": "/home/nobody", "POD_IP": "127.1.2.3", **variables}
        command = expand_all(SPARK.head(small_spec("spark")).command, environment)
        shell = str(shutil.which(command[0]))
        return subprocess.run(
            [shell, *command[1:]], env=environment, cwd=project, capture_output=True, text=True, check=False
        )


@pytest.fixture
def image(tmp_path: Path) -> Image:
    return Image(tmp_path)


SAYS_WHAT_IT_IS = 'echo "$SPARK_HOME $*"'


def test_spark_is_found_where_python_has_it(image: Image) -> None:
    image.has("java", "exit 0")
    image.has("python3", f"echo {image.folder}/pyspark")
    image.has("pyspark/bin/spark-class", SAYS_WHAT_IT_IS)
    done = image.start()
    expected = "org.apache.spark.deploy.master.Master --host 127.1.2.3 --port 7077 --webui-port 8080"
    assert done.stdout == f"{image.folder}/pyspark {expected}\n", done.stderr


@pytest.mark.parametrize("theirs", ["pyspark/__init__.py", "importlib/util.py"])
def test_project_file_does_not_hide_the_installed_spark(image: Image, theirs: str) -> None:
    project = image.folder / "project"
    (project / theirs).parent.mkdir(parents=True)
    (project / theirs).touch()
    image.has("java", "exit 0")
    image.has("python3", f'exec {sys.executable} "$@"')
    image.has("site/pyspark/bin/spark-class", SAYS_WHAT_IT_IS)
    (image.folder / "site/pyspark/__init__.py").touch()
    done = image.start(project=project, PYTHONPATH=f"{image.folder}/site")
    assert done.stdout.startswith(f"{image.folder}/site/pyspark org.apache"), done.stderr


def test_an_image_without_spark_says_so(image: Image) -> None:
    done = image.start()
    assert (done.returncode, done.stderr) == (
        1,
        "There is no Spark in this image: it needs the Python package pyspark, or SPARK_HOME.\n",
    )


def test_an_image_without_java_says_so(image: Image) -> None:
    image.has("spark/bin/spark-class", SAYS_WHAT_IT_IS)
    done = image.start(SPARK_HOME=f"{image.folder}/spark")
    assert (done.returncode, done.stderr) == (1, "Spark needs Java 17, and there is no java in this image.\n")


@dataclass
class Hook:
    """The pre-stop hook of a worker whose process is one of ours."""

    folder: Path
    worker: subprocess.Popen[bytes] | None = None

    def worker_that_is(self, trap: str, script: str) -> None:
        """Returns once the trap is set."""
        command = ["sh", "-c", f"{trap}; echo up; {script}"]
        self.worker = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
        assert self.worker.stdout is not None
        with self.worker.stdout as output:
            assert output.readline() == b"up\n"
        (self.folder / "worker.pid").write_text(f"{self.worker.pid}\n")

    def run(self, seconds: int) -> tuple[int, float, str]:
        mounts = Mounts({"/mnt/local": str(self.folder)})
        command = [
            mounts.rewrite(word) for word in SPARK.worker(small_spec("spark", drain_seconds=seconds + 2), HEAD).pre_stop
        ]
        started = time.monotonic()
        done = subprocess.run(expand_all(command, {}), capture_output=True, text=True, check=False)
        return done.returncode, time.monotonic() - started, done.stderr


@pytest.fixture
def hook(tmp_path: Path) -> Iterator[Hook]:
    hook = Hook(tmp_path)
    yield hook
    if hook.worker is not None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(hook.worker.pid, signal.SIGKILL)
        hook.worker.wait()


def test_worker_with_remaining_executors_has_lost_work_at_deadline(hook: Hook) -> None:
    hook.worker_that_is("trap '' PWR", "sleep 60 & wait")
    code, seconds, words = hook.run(3)
    assert code == 1
    assert seconds >= 3
    assert words == "The drain time is over, and executors still have work or data.\n"


def test_a_worker_is_drained_once_its_executors_have_gone(hook: Hook) -> None:
    hook.worker_that_is("trap : PWR", "sleep 60 & wait; wait; exec sleep 60")
    code, seconds, _ = hook.run(60)
    assert code == 0
    assert seconds < 30


def test_a_child_that_has_ended_is_no_executor(hook: Hook) -> None:
    hook.worker_that_is("trap '' PWR", "true & exec sleep 60")
    code, seconds, _ = hook.run(60)
    assert code == 0
    assert seconds < 30
