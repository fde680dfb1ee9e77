"""The web process as browser tests meet it: the whole application over a cluster in memory, directed through stdin.

Run as a program of its own, so that it can be killed and started again on its port. Each line on stdin names a scene, an
`async def` of a test module that gets the `Stage` and changes what is on it; the answer on stdout is one line of JSON.
"""

import asyncio
import importlib
import json
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import django
import uvicorn
from asgiref.sync import sync_to_async

from grid.metrics.usage import Measured
from tests.support.cluster import FakeCluster

PEOPLE = ("alice", "bob", "charlie", "olga-operator", "ada-admin")


@dataclass
class Stage:
    """What scenes change. `measured` is what the next round of usage finds."""

    cluster: FakeCluster
    runtime: Any
    measured: Measured = field(default_factory=lambda: Measured({}, {}))

    async def measure(self) -> Measured:
        return self.measured


def password_of(name: str) -> str:
    return f"{name}-password"


def prepare_database() -> None:
    from django.contrib.auth.models import Group

    from grid.models import User
    from tests.support import migrated

    migrated.migrate()
    if User.objects.exists():
        return
    for name in PEOPLE:
        make = User.objects.create_superuser if name == "ada-admin" else User.objects.create_user
        make(username=name, password=password_of(name))
    User.objects.get(username="olga-operator").groups.add(Group.objects.get_or_create(name="operators")[0])


async def serve(port: int) -> None:
    from grid.asgi import application
    from grid.models.dataplane import LOCAL
    from grid.runtime import lives_of, new_runtime, started
    from tests.support.runtime import using_runtime

    cluster = FakeCluster()
    runtime = new_runtime({LOCAL: cluster})
    stage = Stage(cluster, runtime)
    tls = os.environ.get("GRID_TEST_TLS")  # a file with a key and its certificate
    config = uvicorn.Config(application, port=port, lifespan="off", log_level="warning", ssl_certfile=tls)
    server = uvicorn.Server(config)
    with using_runtime(runtime):
        lives = lives_of(runtime, lambda api: stage)
        del lives[f"controller lease of {LOCAL}"]  # there is no controller
        tasks = started(lives)
        serving = asyncio.create_task(server.serve())
        while not server.started:
            if serving.done():
                raise SystemExit(f"port {port} cannot be used")
            await asyncio.sleep(0.02)
        say({"ready": port})
        await direct(stage)
        server.should_exit = server.force_exit = True
        await serving
        for task in tasks:
            task.cancel()


async def direct(stage: Stage) -> None:
    """Play scenes until stdin ends, which is also what happens when the tests' process dies."""
    while line := await asyncio.to_thread(sys.stdin.readline):
        order = json.loads(line)
        try:
            module, _, name = order["scene"].partition(":")
            scene: Callable[..., Awaitable[Any]] = getattr(importlib.import_module(module), name)
            say({"result": await scene(stage, **order["arguments"])})
        except Exception as error:
            say({"error": f"{type(error).__name__}: {error}"})


def say(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


async def main(port: int) -> None:
    await sync_to_async(prepare_database)()
    await serve(port)


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    asyncio.run(main(int(sys.argv[1])))
