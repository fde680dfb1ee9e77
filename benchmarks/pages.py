"""What one changed pod costs the pages that people look at, by the number of pods and of lists; the baseline is making one list anew.

    .venv/bin/python -m benchmarks.pages [PODS ...]

Everything happens in this process, on one event loop, without a network: a pod of somebody's execution changes its restarts, the lists
take it in, the pages that show it look again, and the row is rendered. People have lists of their own (their project's executions), one in
four is an operator with a filter of his own. Times are of the thread's CPU, the median of 200 changes, each after the one before is done.
"""

import asyncio
import os
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from typing import Any

import msgspec

LISTS = (1, 100, 1_000)
CHANGES = 200
PODS_PER_NODE = 30


def main(sizes: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"GRID_VAR": folder, "GRID_SECRET_KEY": "benchmark", "DATABASE_URL": "sqlite://:memory:"}
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "grid.settings")
        import django

        django.setup()
        print(
            f"{'pods':>9}{'lists':>7}{'one change':>13}{'its lists':>11}{'first paint':>13}{'list anew':>11}{'longest slice':>15}"
        )
        for pods in sizes:
            for lists in LISTS:
                asyncio.run(measured(pods, lists))


async def measured(pods: int, lists: int) -> None:
    from dashboard.executions.pages.executions import ExecutionsPage

    runtime, people = filled(pods)
    page = ExecutionsPage()
    views = [view_of(number, people) for number in range(lists)]
    longest = [0.0]
    watching = asyncio.create_task(watch_the_loop(longest))
    await asyncio.sleep(0)
    first, anew, shown = [], [], []
    for viewer, view in views:
        began = time.thread_time()
        facts = await page.read(runtime, viewer, view)
        page.fragments(runtime, viewer, view, facts, runtime.clock())
        anew.append(time.thread_time() - began)
        began = time.thread_time()
        facts = await page.read(runtime, viewer, view)
        page.fragments(runtime, viewer, view, facts, runtime.clock())
        first.append(time.thread_time() - began)
        shown.append((viewer, view, facts))
    watching.cancel()
    a_list, all_lists = await changed(runtime, page, shown)
    in_ms = (
        a_list,
        all_lists,
        statistics.median(first),
        anew[0] if lists == 1 else statistics.median(anew),
        longest[0],
    )
    print(
        f"{pods:>9,}{lists:>7,}"
        + "".join(f"{1000 * value:>{width}.2f}" for value, width in zip(in_ms, (13, 11, 13, 11, 15), strict=True))
    )


async def watch_the_loop(longest: list[float]) -> None:
    """Note the longest time that the loop was not free, in seconds of this thread's CPU."""
    while True:
        began = time.thread_time()
        await asyncio.sleep(0)
        longest[0] = max(longest[0], time.thread_time() - began)


async def changed(runtime: Any, page: Any, shown: list[Any]) -> tuple[float, float]:
    """CPU seconds of a change until the first list that shows it is rendered, and until all are."""
    from dashboard.shell.pages.feed import rendered
    from dashboard.shell.viewmodels.live import Shown, changes

    first, whole = [], []
    states = {}
    subscriptions = {}
    for number, (viewer, view, facts) in enumerate(shown):
        fragments = page.fragments(runtime, viewer, view, facts, runtime.clock())
        states[number] = Shown.of(fragments, page.regions)
        subscriptions[number] = runtime.hub.subscribe({facts.topic})
        subscriptions[number].__enter__()
    names = [pod.metadata.key for pod in list(runtime.pods.values())[:: max(1, len(runtime.pods) // CHANGES)]]
    for round, name in enumerate(names[:CHANGES]):
        for subscription in subscriptions.values():
            subscription._dirty.clear()
        old = runtime.pods.get(name)
        status = msgspec.structs.replace(old.status.container_statuses[0], restart_count=1000 + round)
        new = msgspec.structs.replace(old, status=msgspec.structs.replace(old.status, container_statuses=[status]))
        began = time.thread_time()
        runtime.pods.apply(new)
        await asyncio.sleep(0)
        dirty = [number for number, subscription in subscriptions.items() if subscription._dirty]
        taken_in = time.thread_time()
        spent = []
        for number in dirty:
            started = time.thread_time()
            viewer, view, facts = shown[number]
            fragments = page.fragments(runtime, viewer, view, facts, runtime.clock())
            state = Shown.of(fragments, page.regions)
            rendered.message(changes(states[number], state), now=runtime.clock())
            states[number] = state
            spent.append(time.thread_time() - started)
        if dirty:
            first.append(taken_in - began + spent[0])
            whole.append(sum(spent) / len(spent))
    return statistics.median(first or [0.0]), statistics.median(whole or [0.0])


def view_of(number: int, people: int) -> Any:
    from dashboard.executions.viewmodels.executions_view import ExecutionsView
    from dashboard.shell.access import Role, Viewer

    person = number % people
    if number % 4 == 0:
        query = {"user": f"user-{person}"} if number else {}
        return Viewer(id=person, username=f"user-{person}", role=Role.OPERATOR), ExecutionsView.parse(query)
    return Viewer(id=person, username=f"user-{person}", role=Role.PRACTITIONER), ExecutionsView.parse({"sort": "name"})


def filled(pods: int) -> tuple[Any, int]:
    """A runtime with that many pods of executions: single ones, and one in eight a cluster of 20."""
    from grid.kube.objects import Node, Pod
    from grid.models.dataplane import LOCAL
    from grid.runtime import new_runtime
    from tests.executions.executing import ROW, pod_of
    from tests.support import builders
    from tests.support.builders import decode
    from tests.support.cluster import FakeCluster
    from tests.support.runtime import become

    runtime = new_runtime({LOCAL: FakeCluster()})
    people = max(1, pods // 150)
    rows, made, number = [], 0, 0
    while made < pods:
        is_cluster, id = number % 8 == 0, f"e{number:09}"
        person = number % people
        rows.append(
            replace(
                ROW,
                id=id,
                kind="cluster" if is_cluster else "workspace",
                title=f"Work {number}",
                owner_id=person,
                owner_username=f"user-{person}",
                project_id=f"p{person}",
                project_roles={person: "owner", (person + 1) % people: "contributor"},
            )
        )
        for member in range(min(20, pods - made) if is_cluster else 1):
            node = f"n{made // PODS_PER_NODE}"
            pod = pod_of(
                id,
                name=f"{'cluster' if is_cluster else 'workspace'}-{id}-{member}",
                node=node,
                phase="Running",
                ready=True,
            )
            runtime.pods.apply(decode(pod, Pod))
            made += 1
        number += 1
    become(runtime.nodes, (decode(builders.node(f"n{place}"), Node) for place in range(made // PODS_PER_NODE + 1)))
    runtime.executions.replace(rows)
    return runtime, people


if __name__ == "__main__":
    main([int(argument) for argument in sys.argv[1:]] or [1_000, 10_000, 150_000])
