"""What is said of programs' ends that an expert invented before reading any rule, and that were explained wrongly or poorly.

The texts are those of Python, R, Julia, Java, pip, Git, torchrun, Istio, Linkerd and Kubernetes. Read
`tests/golden/words-of-ends-of-programs.txt`.
"""

from datetime import timedelta
from typing import Any

import pytest

from grid.diagnosis.diagnosis import Diagnosis
from grid.diagnosis.lastwords import last_words
from grid.kube.objects import Node
from tests.diagnosis.situations import assert_answers_as_stored, ended, explain, on_a_node
from tests.diagnosis.test_parts import WAITS, made_of, status
from tests.support.builders import MOMENT, condition, decode, node

# The end of a log, and the line of it that says most; "" for none.
LAST_WORDS = [
    ("[Errno 13] Permission denied: '/.config'\nTraceback (most recent call last):\n  raise ValueError('n/a')\nValueError: n/a",
     'ValueError: n/a'),
    ('INFO start\n2026-03-04 09:00:00 FATAL the label is constant\nINFO closing after an error\nbye',
     '2026-03-04 09:00:00 FATAL the label is constant'),
    ('ValueError: no room for the KV cache\nRuntimeError: Engine failed. See root cause above.', 'ValueError: no room for the KV cache'),
    ('Error in load(x) : \n  cannot open the connection\nExecution halted', 'Error in load(x) : cannot open the connection'),
    ("fatal: detected dubious ownership in repository at '/repo'\nTo add an exception, call:\n\n\tgit config",
     "fatal: detected dubious ownership in repository at '/repo'"),
    ('Exception in thread "main" a.b.JobFailed: stage 2\n\tat a.b.Main\nCaused by: a.b.BadRow: row 7\n\tat a.b.Rows',
     'Caused by: a.b.BadRow: row 7'),
    ('[rank1]: KeyError: \'label\'\n[rank1]:   File "a.py"\ntorch.distributed.elastic.multiprocessing.errors.ChildFailedError: ',
     "KeyError: 'label'"),
    ('epoch 3\nrun.sh: cannot open data.csv\nbye', 'run.sh: cannot open data.csv'),
    ('\x1b[31mERROR\x1b[0m: Could not install packages\nConsider using the `--user` option', 'ERROR: Could not install packages'),
    ('Aborted (core dumped)\nmake: *** [all] Error 2\nepoch 3: loss 0.31', ''),
    ('', ''),
]  # fmt: skip


@pytest.mark.parametrize(("log", "line"), LAST_WORDS)
def test_last_words_are_the_line_that_says_most(log: str, line: str) -> None:
    assert last_words(log) == line


PREEMPTED, TAINTED, EVICTED = "PreemptionByScheduler", "DeletionByTaintManager", "EvictionByEvictionAPI"
NO_INDEX = (
    "WARNING: Retrying after connection broken by 'NewConnectionError: [Errno 101] Network is unreachable': /simple/polars/\n"
    "ERROR: Could not find a version that satisfies the requirement polars (from versions: none)\n"
    "ERROR: No matching distribution found for polars"
)
OTHER_RANK = (
    "torch.OutOfMemoryError: CUDA out of memory.\n[rank1]: Watchdog caught collective operation timeout: WorkNCCL"
)
ISTIO = (
    "error\tError connecting to 127.0.0.6:15002: dial tcp 127.0.0.6:15002: connect: connection refused\n"
    "error\tiptables validation failed; workload is not ready for Istio."
)
LINKERD = 'level=error msg="aborting firewall configuration"\nError: exit status 4'
EXPIRED = "SSLError: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: certificate has expired (_ssl.c:1006)"


def disrupted(by: str, end: dict[str, Any], *, seconds: float = 10) -> Diagnosis:
    """By Kubernetes, so long ago."""
    target = condition("DisruptionTarget", "True", by, at=MOMENT - timedelta(seconds=seconds))
    raw = on_a_node(end)
    return explain(raw | {"status": {**raw["status"], "phase": "Failed", "conditions": [target]}})


def setup_fails(name: str, code: int, log: str) -> Diagnosis:
    last = status(name, {"waiting": {"reason": "CrashLoopBackOff"}}, restarts=3, lastState=ended(code, message=log))
    return explain(
        made_of([last], [status("run", WAITS)], steps=({"name": name, "image": "proxy:1"},), phase="Pending")
    )


def on_sick_node(kind: str, reason: str, says: str) -> Diagnosis:
    sick = decode(node("node-1", conditions=[condition(kind, "True", reason, says)]), Node)
    return explain(on_a_node(ended(1, message="RuntimeError: CUDA error: unspecified launch failure")), node=sick)


def test_ends_of_programs_are_told_as_stored() -> None:
    no_module = ended(1, seconds=600, message="ModuleNotFoundError: No module named 'polars'")
    logs = {
        "no network for pip": NO_INDEX, "memory of a GPU, and the other ranks": OTHER_RANK, "expired certificate": EXPIRED,
        "child killed": "subprocess.CalledProcessError: Command 'run.sh' returned non-zero exit status 137.",
        "nothing known": LAST_WORDS[0][0],
    }  # fmt: skip
    answers = {
        **{name: explain(on_a_node(ended(1, message=log))) for name, log in logs.items()},
        "failed long before it was preempted": disrupted(PREEMPTED, no_module),
        "out of memory before its node was taken": disrupted(TAINTED, ended(137, "OOMKilled", seconds=40)),
        "ended well before its node was drained": disrupted(EVICTED, ended(0, "Completed", seconds=40)),
        "fails while it is evicted": disrupted(EVICTED, ended(1, message="KeyboardInterrupt")),
        "check of Istio": setup_fails("istio-validation", 126, ISTIO),
        "setup of Linkerd": setup_fails("linkerd-init", 1, LINKERD),
        "a setup step's own exit code 126": setup_fails("fetch", 126, "error: the bucket is empty"),
        "node with an unknown trouble": on_sick_node("GpuXid", "XidError", "NVRM: Xid 48, Double Bit ECC Error"),
        "node that says all is well": on_sick_node("GpuReservation", "Reserved", "the reservation holds"),
    }
    assert_answers_as_stored("words-of-ends-of-programs", answers.items())
