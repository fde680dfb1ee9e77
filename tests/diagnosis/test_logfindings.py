"""What is found in the end of a log, with lines that are merely like it, and what of it is said when the program has ended."""

import re
from time import process_time

import pytest

from grid.core import regexes
from grid.diagnosis import logfindings
from grid.diagnosis.logfindings import LAST_LINES, LogTable, findings
from grid.diagnosis.logpatterns import BUILT_IN, BUILT_IN_PREFIX, LogPattern
from tests.diagnosis.rule_examples import EXAMPLES
from tests.diagnosis.situations import Case, assert_told_as_stored, ended, on_a_node

MEMORY = "It ran out of memory."
KILLED = "One of its processes was killed, usually because memory ran out."
DISK = "The disk is full."
READ_ONLY = "It wrote to a read-only file system."
PERMISSION = "It has no permission for a file."
HOST = "A host name cannot be resolved."
REFUSED = "A service refused the connection."
SHARED = "Shared memory (/dev/shm) is full."
STORAGE = "The object storage refused its credentials."
THREADS = "It could not start another thread."
CERTIFICATE = "The certificate of a service is not trusted."
LATE = "A service did not answer in time."
CRASHED = "One of its processes crashed (segmentation fault)."
PORT = "Another program already listens on its port."
NO_GPU = "It found no GPU that it can use."

KNOWN = [
    ("MemoryError", MEMORY),
    (
        "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 74.5 GiB for an array with shape (100000, 100000)",
        MEMORY,
    ),
    ('Exception in thread "main" java.lang.OutOfMemoryError: Java heap space', MEMORY),
    ("terminate called after throwing an instance of 'std::bad_alloc'", MEMORY),
    ("OSError: [Errno 12] Cannot allocate memory", MEMORY),
    (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.9 GiB",
        "The GPU ran out of memory.",
    ),
    ("RuntimeError: DataLoader worker (pid 71) is killed by signal: Bus error. It is possible that ...", SHARED),
    ("Killed", KILLED),
    ("run.sh: line 4:   123 Killed                  python train.py", KILLED),
    ("ModuleNotFoundError: No module named 'polars.io'", "Python module polars.io is not installed."),
    (
        "ImportError: libGL.so.1: cannot open shared object file: No such file or directory",
        "Library libGL.so.1 is not installed.",
    ),
    (
        "ERROR: ResolutionImpossible: for help visit https://pip.pypa.io",
        "pip found no versions of the packages that fit together.",
    ),
    (
        "ERROR: Cannot install a==1 and b==2 because these package versions have conflicting dependencies.",
        "pip found no versions of the packages that fit together.",
    ),
    ("ERROR: No matching distribution found for torch==9.9", "pip found no version of torch==9.9 for this Python."),
    ("OSError: [Errno 28] No space left on device: '/mnt/project/a'", DISK),
    ("OSError: [Errno 122] Disk quota exceeded", DISK),
    ("OSError: [Errno 30] Read-only file system: '/etc/a'", READ_ONLY),
    ("PermissionError: [Errno 13] Permission denied: '/data/a'", PERMISSION),
    ("bash: /data/a: Permission denied", PERMISSION),
    ("socket.gaierror: [Errno -3] Temporary failure in name resolution", HOST),
    ("socket.gaierror: [Errno -2] Name or service not known", HOST),
    ("curl: (6) Could not resolve host: db.example", HOST),
    ("dial tcp: lookup db.example: no such host", HOST),
    ("ConnectionRefusedError: [Errno 111] Connection refused", REFUSED),
    ("psycopg.OperationalError: connection to server at 10.0.0.1, port 5432 failed: Connection refused", REFUSED),
    ("Error: connect ECONNREFUSED 127.0.0.1:5432", REFUSED),
    ("java.net.UnknownHostException: db.example", HOST),
    ("Error: getaddrinfo ENOTFOUND db.example", HOST),
    ("subprocess.CalledProcessError: Command '['train']' died with <Signals.SIGKILL: 9>.", KILLED),
    (
        "loky.process_executor.TerminatedWorkerError: A worker process managed by the executor was unexpectedly terminated.",
        KILLED,
    ),
    ("RuntimeError: can't start new thread", THREADS),
    ("java.lang.OutOfMemoryError: unable to create native thread: possibly out of memory", THREADS),
    (
        "OSError: [Errno 116] Stale file handle: '/mnt/project/a'",
        "A file on shared storage changed or went away while it was open.",
    ),
    ("FileNotFoundError: [Errno 2] No such file or directory: 'data/train.csv'", "File data/train.csv does not exist."),
    (
        "botocore.exceptions.ClientError: An error occurred (AccessDenied) when calling the GetObject operation: Access Denied",
        STORAGE,
    ),
    ("botocore.exceptions.NoCredentialsError: Unable to locate credentials", STORAGE),
    (
        "ssl.SSLCertVerificationError: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate",
        CERTIFICATE,
    ),
    ("curl: (60) SSL certificate problem: unable to get local issuer certificate", CERTIFICATE),
    ("requests.exceptions.ReadTimeout: HTTPSConnectionPool(host='s3.example', port=443): Read timed out.", LATE),
    ("psql: error: connection to server at 10.0.0.1, port 5432 failed: Connection timed out", LATE),
    ("OSError: [Errno 98] Address already in use", PORT),
    ("run.sh: line 3:    71 Segmentation fault      (core dumped) ./solve", CRASHED),
    ("Fatal Python error: Segmentation fault", CRASHED),
    ("RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU.", NO_GPU),
    ("AssertionError: Torch not compiled with CUDA enabled", NO_GPU),
    ("\x1b[0;31mModuleNotFoundError\x1b[0m: No module named 'polars'", "Python module polars is not installed."),
]
MEANINGLESS = [
    "",
    "epoch 3: loss 0.31",
    "host db.example found, 3 addresses",
    *(is_like for _, is_like in EXAMPLES["logpatterns.BUILT_IN"].values()),
]


@pytest.mark.parametrize(("line", "meaning"), KNOWN)
def test_a_known_line_is_found_with_its_cure(line: str, meaning: str) -> None:
    [finding] = findings(f"start\n  {line}\nafterwards\n")
    assert finding.meaning == meaning
    assert finding.line == re.sub(r"\x1b\[[0-9;]*m", "", line)
    assert finding.cure.endswith(".")


@pytest.mark.parametrize("line", MEANINGLESS)
def test_line_that_is_merely_similar_is_ignored(line: str) -> None:
    assert findings(line) == []


def test_last_line_is_the_cause_and_meanings_are_unique() -> None:
    text = "Connection refused\nMemoryError\nconnection refused\nModuleNotFoundError: No module named 'a'\n"
    assert [entry.meaning for entry in findings(text)] == ["Python module a is not installed.", REFUSED, MEMORY]


def test_a_long_line_is_cut() -> None:
    [finding] = findings("MemoryError " + "x" * 5000)
    assert len(finding.line) == 300


def test_only_the_end_of_a_log_is_searched() -> None:
    assert findings("MemoryError\n" + "epoch\n" * (LAST_LINES - 1))
    assert not findings("MemoryError\n" + "epoch\n" * LAST_LINES)


def test_built_in_entries_are_searchable_with_product_keys() -> None:
    assert [entry.key for entry in BUILT_IN if regexes.problem_of(entry.pattern)] == []
    assert all(entry.key.startswith(BUILT_IN_PREFIX) and entry.cure.endswith(".") for entry in BUILT_IN)


def test_the_first_entry_that_knows_a_line_explains_it() -> None:
    licence = LogPattern("licence", r"licence server (\S+): Connection refused", "No licence of {}.", "Wait.", "/help/")
    line = "licence server lic.example: Connection refused"
    [finding] = LogTable([licence, *BUILT_IN]).findings(line)
    assert (finding.key, finding.meaning, finding.cure, finding.link) == (
        "licence",
        "No licence of lic.example.",
        "Wait.",
        "/help/",
    )
    assert [entry.meaning for entry in LogTable([*BUILT_IN, licence]).findings(line)] == [REFUSED]


@pytest.mark.parametrize(
    ("pattern", "meaning", "expected"),
    [
        ("E(\\d+)", "{0.__class__} {}", "{0.__class__} 17"),
        ("E\\d+", "Code {}.", "Code ."),
        ("E(x)?", "Code {}.", "Code ."),
        ("E(\\d+)", "{:>999999999}", "{:>999999999}"),
    ],
)
def test_a_meaning_is_no_format_string(pattern: str, meaning: str, expected: str) -> None:
    [finding] = LogTable([LogPattern("k", pattern, meaning, "")]).findings("E17")
    assert finding.meaning == expected


def test_catastrophic_patterns_are_searched_in_a_moment() -> None:
    hostile = [
        LogPattern(f"k{at}", pattern, "m", "") for at, pattern in enumerate(("(a+)+$", "(a|a?)+b", "(?:.*a){20}b"))
    ]
    table, before = LogTable(hostile * 20), process_time()
    assert table.findings("\n".join(["a" * 1999 + "!"] * LAST_LINES)) == []
    assert len(table.findings("a" * 50 + "b")) == 1
    assert process_time() - before < 20  # a backtracking engine would need the age of the universe


def test_another_table_is_in_force_everywhere_at_once() -> None:
    before = Case("", on_a_node(ended(1, message="LIC-17"))).explain()
    logfindings.use([LogPattern("licence", "LIC-17", "The licences are all in use.", "Wait for one.")])
    after = Case("", on_a_node(ended(1, message="LIC-17"))).explain()
    assert "licences" not in before.sentence
    assert after.sentence.endswith("exit code 1. The licences are all in use.")
    assert after.next_step == "Wait for one."


NO_MODULE = "Traceback (most recent call last):\nModuleNotFoundError: No module named 'polars'"
CASES = [
    Case("cause in the log", on_a_node(ended(1, message=NO_MODULE))),
    Case("no known cause in the log", on_a_node(ended(1, message="no such column"))),
    Case("the same words of a program without an error", on_a_node(ended(0, "Completed", message=NO_MODULE))),
    Case("the kernel says more", on_a_node(ended(137, "OOMKilled", message="Connection refused"))),
    Case("the exit code says more", on_a_node(ended(127, message="Connection refused"))),
    Case(
        "crashes again and again",
        on_a_node({"waiting": {"reason": "CrashLoopBackOff"}}, restarts=2, lastState=ended(1, message=NO_MODULE)),
    ),
    Case(
        "restarted",
        on_a_node(
            {"running": {"startedAt": "2026-03-04T08:59:56Z"}},
            ready=True,
            restarts=1,
            lastState=ended(1, message=NO_MODULE),
        ),
    ),
]


def test_the_whole_words_are_as_stored() -> None:
    assert_told_as_stored("words-of-logs", CASES)
