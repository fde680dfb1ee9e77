"""What is found in the end of a log, with lines that are merely like it, and what of it is said when the program has ended."""

from time import process_time

import pytest

from grid.core import regexes
from grid.diagnosis import logfindings
from grid.diagnosis.logfindings import BUILT_IN, BUILT_IN_PREFIX, LAST_LINES, LogPattern, LogTable, findings
from tests.diagnosis.rule_examples import EXAMPLES
from tests.diagnosis.situations import Case, assert_told_as_stored, ended, on_a_node

# What other programs write for the same causes as in the examples of their rules.
OTHER_WORDS = [
    ("numpy._core._exceptions._ArrayMemoryError: Unable to allocate 74.5 GiB for an array", "grid.memory"),
    ('Exception in thread "main" java.lang.OutOfMemoryError: Java heap space', "grid.heap"),
    ("terminate called after throwing an instance of 'std::bad_alloc'", "grid.memory"),
    ("OSError: [Errno 12] Cannot allocate memory", "grid.memory"),
    ("run.sh: line 4:   123 Killed                  python train.py", "grid.killed"),
    ("subprocess.CalledProcessError: Command '['train']' died with <Signals.SIGKILL: 9>.", "grid.killed"),
    ("loky.process_executor.TerminatedWorkerError: A worker process was unexpectedly terminated.", "grid.killed"),
    ("ERROR: ResolutionImpossible: for help visit https://pip.pypa.io", "grid.pip-conflict"),
    ("OSError: [Errno 122] Disk quota exceeded", "grid.disk-full"),
    ("bash: /data/a: Permission denied", "grid.permission"),
    ("socket.gaierror: [Errno -3] Temporary failure in name resolution", "grid.host-name"),
    ("socket.gaierror: [Errno -2] Name or service not known", "grid.host-name"),
    ("dial tcp: lookup db.example: no such host", "grid.host-name"),
    ("java.net.UnknownHostException: db.example", "grid.host-name"),
    ("Error: getaddrinfo ENOTFOUND db.example", "grid.host-name"),
    ("Error: connect ECONNREFUSED 127.0.0.1:5432", "grid.refused"),
    ("java.lang.OutOfMemoryError: unable to create native thread: possibly out of memory", "grid.threads"),
    ("botocore.exceptions.NoCredentialsError: Unable to locate credentials", "grid.storage-access"),
    ("ssl.SSLCertVerificationError: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed", "grid.certificate"),
    ("requests.exceptions.ReadTimeout: HTTPSConnectionPool(host='s3.example'): Read timed out.", "grid.timed-out"),
    ("run.sh: line 3:    71 Segmentation fault      (core dumped) ./solve", "grid.crashed"),
    ("RuntimeError: Found no NVIDIA driver on your system.", "grid.no-gpu"),
]
OTHER_CLOUDS = [
    (
        "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
        "grid.nccl-peer",
    ),
    (
        "google.api_core.exceptions.Forbidden: 403 GET: a@b does not have storage.objects.get access to the object.",
        "grid.storage-rights",
    ),
    ("ErrorCode:AuthorizationPermissionMismatch", "grid.storage-rights"),
    (
        "The client 'a' does not have authorization to perform action 'Microsoft.Storage/storageAccounts/read'",
        "grid.storage-rights",
    ),
    (
        "com.amazonaws.AmazonS3Exception: Access Denied (Service: Amazon S3; Error Code: AccessDenied)",
        "grid.storage-rights",
    ),
    (
        "google.api_core.exceptions.Unauthorized: 401 Anonymous caller does not have storage.objects.get access",
        "grid.storage-access",
    ),
]
MEANINGLESS = ["", "epoch 3: loss 0.31", *(is_like for _, is_like in EXAMPLES["logfindings.BUILT_IN"].values())]


@pytest.mark.parametrize(("line", "key"), OTHER_WORDS + OTHER_CLOUDS)
def test_a_known_line_is_found_in_other_words(line: str, key: str) -> None:
    [finding] = findings(f"start\n  {line}\nafterwards\n")
    assert (finding.key, finding.line) == (key, line)


def test_colours_of_a_line_are_overlooked() -> None:
    [finding] = findings("\x1b[0;31mModuleNotFoundError\x1b[0m: No module named 'polars.io'")
    assert finding.line == "ModuleNotFoundError: No module named 'polars.io'"
    assert finding.meaning == "Python module polars.io is not installed."


def test_line_that_is_merely_similar_is_ignored() -> None:
    for line in MEANINGLESS:
        assert findings(line) == [], line


def test_last_line_is_the_cause_and_meanings_are_unique() -> None:
    text = "Connection refused\nMemoryError\nconnection refused\nModuleNotFoundError: No module named 'a'\n"
    assert [entry.meaning for entry in findings(text)] == [
        "Python module a is not installed.",
        "A service refused the connection.",
        "It ran out of memory.",
    ]


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
    assert [entry.key for entry in LogTable([*BUILT_IN, licence]).findings(line)] == ["grid.refused"]


@pytest.mark.parametrize(
    ("pattern", "meaning", "expected"),
    [
        ("E(\\d+)", "{0.__class__} {}", "{0.__class__} 17"),
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
FORBIDDEN = (
    r'{"message":"pods is forbidden: User \"system:serviceaccount:a:b\" cannot list resource \"pods\" in API group"}'
)
CASES = [
    *(Case(key, on_a_node(ended(1, message=line))) for key, (line, _) in EXAMPLES["logfindings.BUILT_IN"].items()),
    Case("cause in the log", on_a_node(ended(1, message=NO_MODULE))),
    Case("its account lacks a right, as JSON", on_a_node(ended(1, message=FORBIDDEN))),
    Case("the heap of a Spark executor", on_a_node(ended(52, message="java.lang.OutOfMemoryError: Java heap space"))),
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
