"""Of the tests that failed once, the second try decides; and what a test may not leave behind, in tasks, sockets or the database."""

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from django.apps import apps
from django.contrib.auth.models import Permission
from django.core.management import call_command

from grid.models import Execution
from tests.support.emptying import empty
from tests.support.leftovers import no_task_is_left, nothing_is_left
from tests.support.rerun import LIMIT, exit_code
from tests.support.shop import Shop, shop

FAILED = pytest.ExitCode.TESTS_FAILED
ROOT = Path(__file__).parents[1]
FLAKY = """
from pathlib import Path

def test_second_try_passes():
    seen = Path(__file__).with_name("seen")
    again = seen.exists()
    seen.touch()
    assert again, "the first try"

def test_other_is_run_once():
    seen = Path(__file__).with_name("other")
    assert not seen.exists()
    seen.touch()
"""
__all__ = ["shop"]


def run(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(code)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": "-p no:randomly -p no:django"}
    environment.pop("PYTEST_XDIST_WORKER", None)
    command = [sys.executable, "-m", "tests.support.rerun", "test_it.py", "-n", "2"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_flaky_test_is_printed_with_its_log_and_passes(tmp_path: Path) -> None:
    ran = run(tmp_path, FLAKY)
    assert ran.returncode == 0, ran.stdout
    assert "flaky: test_it.py::test_second_try_passes" in ran.stdout
    assert "AssertionError: the first try" in ran.stdout.partition("flaky: ")[2]


@pytest.mark.slow
def test_broken_test_fails_the_run(tmp_path: Path) -> None:
    ran = run(tmp_path, "def test_broken():\n    assert 1 == 2\n")
    assert ran.returncode == FAILED
    assert "failed twice: test_it.py::test_broken" in ran.stdout


def test_many_failures_get_no_second_try() -> None:
    def never(node: str) -> bool:
        raise AssertionError(node)

    assert exit_code(FAILED, dict.fromkeys(map(str, range(LIMIT + 1)), "log"), never) == FAILED


def test_broken_test_among_flaky_ones_fails_the_run() -> None:
    assert exit_code(FAILED, {"a": "", "b": "", "c": ""}, lambda node: node != "b") == FAILED
    assert exit_code(FAILED, {"a": "", "b": "", "c": ""}, lambda _: True) == 0


@pytest.mark.parametrize("code", [pytest.ExitCode.INTERRUPTED, pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.OK])
def test_other_exit_codes_stay(code: int) -> None:
    assert exit_code(code, {}, lambda _: True) == code


def test_a_process_that_goes_on_is_found() -> None:
    process = None
    try:
        with pytest.raises(AssertionError, match="left processes"), nothing_is_left():
            process = subprocess.Popen(["sleep", "600"])
    finally:
        if process is not None:
            process.kill()
            process.wait()


def test_a_process_that_nobody_has_waited_for_is_found() -> None:
    with pytest.raises(AssertionError, match="left processes"), nothing_is_left():
        process = subprocess.Popen(["true"])
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    process.wait()


def test_an_open_socket_is_found() -> None:
    with pytest.raises(AssertionError, match=r"left open: .*socket:"), nothing_is_left():
        left = socket.socket()
    left.close()


def test_unclosed_object_warns_in_its_own_test() -> None:
    seen: list[object] = []

    class Unclosed:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            seen.append(True)

    with nothing_is_left():
        Unclosed()
    assert seen


async def test_remaining_task_is_found_and_ending_one_is_not() -> None:
    ending = asyncio.create_task(asyncio.sleep(600))
    ending.cancel()
    await no_task_is_left()
    left = asyncio.create_task(asyncio.sleep(600))
    with pytest.raises(AssertionError, match=r"left tasks: .*sleep"):
        await no_task_is_left(patience=0.1)
    left.cancel()


def rows() -> dict[str, int]:
    return {model._meta.label: model._default_manager.count() for model in apps.get_models() if model._meta.managed}


@pytest.mark.django_db(transaction=True)
def test_database_is_emptied_as_django_does(shop: Shop) -> None:
    shop.launch_with_cluster()
    assert Execution.objects.count() == 2
    permissions = set(Permission.objects.values_list("content_type__model", "codename"))
    empty("default")
    left = rows()
    assert set(Permission.objects.values_list("content_type__model", "codename")) == permissions
    call_command("flush", verbosity=0, interactive=False)
    assert left == rows()
