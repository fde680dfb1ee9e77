"""The check that runs beside every test: what it finds, so that the others can rely on it."""

import asyncio
import os
import socket
import subprocess

import pytest
from django.apps import apps
from django.contrib.auth.models import Permission
from django.core.management import call_command

from grid.models import Execution
from tests.support.emptying import empty
from tests.support.leftovers import no_task_is_left, nothing_is_left
from tests.support.shop import Shop, shop

__all__ = ["shop"]


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
