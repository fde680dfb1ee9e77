"""Which worker of a test run gets which files next."""

from types import SimpleNamespace
from typing import Any

from tests.conftest import SharingScheduler

FIRST_BROWSER = [f"tests/browser/test_jobs.py::test_{number}" for number in range(4)]
SECOND_BROWSER = [f"tests/browser/test_{name}.py::test_{number}" for name in ("logs", "usage") for number in range(4)]
REAL = [
    f"tests/{folder}/test_real_{name}.py::test_it" for folder, name in (("sandbox", "nodes"), ("end_to_end", "cluster"))
]
IDLE = "tests/end_to_end/test_idle_workspace.py::test_it"
OTHERS = [f"tests/end_to_end/test_{number}.py::test_it" for number in range(9)]
TESTS = [*OTHERS, IDLE, *REAL, *FIRST_BROWSER, *SECOND_BROWSER]


class Worker:
    """As much of one as the scheduler asks of."""

    def __init__(self, name: str) -> None:
        self.gateway = SimpleNamespace(id=name)
        self.left: list[str] = []  # the first of them is running
        self.done: list[str] = []
        self.shutting_down = False

    def send_runtest_some(self, indices: list[int]) -> None:
        self.left += [TESTS[index] for index in indices]

    def shutdown(self) -> None:
        self.shutting_down = True


def scheduled(*workers: Worker) -> SharingScheduler:
    options = SimpleNamespace(loadscopereorder=True)
    config: Any = SimpleNamespace(getvalue=lambda _: ["popen"] * len(workers), option=options)
    scheduler = SharingScheduler(config)
    for worker in workers:
        scheduler.add_node(worker)
        scheduler.add_node_collection(worker, TESTS)
    scheduler.schedule()
    return scheduler


def test_longest_tests_begin_and_program_tests_stay_together() -> None:
    first, second, third = workers = [Worker(name) for name in "abc"]
    scheduled(*workers)
    assert first.left == FIRST_BROWSER
    assert second.left == SECOND_BROWSER
    assert third.left == [IDLE, *REAL]


def test_worker_keeps_one_spare_test_and_leaves_the_rest() -> None:
    worker = Worker("a")
    scheduler = scheduled(worker)
    while worker.left:
        ended = worker.left.pop(0)
        worker.done.append(ended)
        scheduler.mark_test_complete(worker, TESTS.index(ended))
        if worker.left and worker.left[-1] in OTHERS:
            assert len(worker.left) == (2 if len(worker.done) < len(TESTS) - 1 else 1)
    assert sorted(worker.done) == sorted(TESTS)
    assert worker.shutting_down
