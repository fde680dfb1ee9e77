"""Finds known troubles in the end of a program's log: what a line means, and the usual cure.

The table is data: an entry is a pattern, a meaning and a cure. Those that come with the product know what programs write when they fail,
not words that may stand in any sentence. `use` puts another table in force for the whole process, so that a page, a list and the
controller say the same of a line.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from grid.core.regexes import Expression, ExpressionSet, RepeatedExpression, first_group
from grid.core.translation import gettext as _

logger = logging.getLogger(__name__)

# A program ends with the cause, so only the end of a log is searched.
LAST_LINES = 1000
_LONGEST_SEARCHED = 2000  # characters of a line
LONGEST_LINE = 300  # of the line that is shown as evidence
_LONGEST_MEANING = 300
_BEGINNINGS = frozenset("([0123456789")
# What frameworks put before a line that a process of theirs wrote: Ray its task and process ("(fit pid=77, ip=10.9.0.3) "), torchrun
# the rank ("[rank0]: "), TensorFlow the time, level and place of its own code.
_PREFIX = Expression(
    r"^(?:\((?:raylet|autoscaler|[\w.<>() -]{1,80} pid=\d+)[^()]{0,60}\) |\[(?:rank|default)\d+\]: ?|"
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: [IWEF] [\w/.-]+:\d+\] )+"
)
_COLOURS = RepeatedExpression(r"\x1b\[[0-9;]*[A-Za-z]")
# No id of an admin's own entry begins with it. A key is stored with every finding, so it never changes.
BUILT_IN_PREFIX = "grid."


@dataclass(frozen=True, slots=True)
class LogPattern:
    """`pattern` is a regular expression of RE2 that is searched in each line; {} of `meaning` is its first group."""

    key: str
    pattern: str
    meaning: str
    cure: str
    link: str = ""


def is_built_in(key: str) -> bool:
    return key.startswith(BUILT_IN_PREFIX)


_MORE_MEMORY = _("Choose a tier with more memory, or work on less data at once.")
BUILT_IN = tuple(
    LogPattern(f"{BUILT_IN_PREFIX}{key}", pattern, meaning, cure)
    for key, pattern, meaning, cure in (
        ("gpu-memory", (r"(?:CUDA|HIP|XPU) out of memory|CUDA error: out of memory|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|"
         r"bad_alloc: out_of_memory: CUDA|CUBLAS_STATUS_ALLOC_FAILED|RESOURCE_EXHAUSTED: Out of memory|"
         r"OOM when allocating tensor .*device:GPU"), _("The GPU ran out of memory."),
         _("Use smaller batches or a smaller model, or choose a tier with larger GPUs.")),
        # The driver's own libraries are no part of an image: the node puts them into a container that has a GPU.
        ("no-gpu", (r"Found no NVIDIA driver on your system|Torch not compiled with CUDA enabled|no CUDA-capable device is detected|"
         r"CUDA_ERROR_NO_DEVICE|lib(?:cuda|nvidia-[\w-]+)\.so[\w.]*: cannot open shared object file"),
         _("It found no GPU that it can use."), _("Choose a tier with GPUs and an environment whose libraries are built for CUDA.")),
        ("gpu-driver", r"(?:CUDA|NVIDIA) driver (?:version is insufficient|on your system is too old)",
         _("The node's GPU driver is too old for the program's libraries."),
         _("Choose an environment that is built for an older CUDA, or ask an operator to update the driver.")),
        ("gpu-fault", (r"uncorrectable (?:NVLink|ECC) error|GPU (?:has fallen off the bus|is lost)|NVRM: Xid|Driver/library version mism|"
         r"Error 802: system not yet"),
         _("The node's GPU or its driver failed."),
         _("Launch it again; show this line to an operator, because the GPU may need a reset or a repair, or its node a reboot.")),
        ("device", r"initialize NVML: (?:Unk|Insuf)|\(s\) is/are busy or unav|/dev/(?:kfd|dri|nvidia|vfio|accel)\b.*(?:denied|busy)",
         _("It cannot open the GPU or other device that it was given."),
         _("Launch it again; if that does not help, ask an operator whether another process holds the device, or who may open it.")),
        ("nccl-peer", (r"\bncclRemoteError\b|remote process exited|\bsocketPollConnect\b|gloo/transport.*(?:closed|reset) by peer|"
         r"\bHorovodInternalError\b"),
         _("Another process of its training ended, or the network between them failed."),
         _("Read the logs of the other workers first: the one that ended first says why. If none did, ask an operator about the network.")),
        ("nccl", r"\bnccl(?:UnhandledCuda|System|Internal)Error\b|NCCL error|Watchdog caught collective operation timeout",
         _("Its processes on several GPUs lost contact with each other (NCCL)."),
         _("Look for the first error of any of them: when one ends, the others report this.")),
        ("gpu-model", (r"no kernel image is available|is not compatible with the current PyTorch|device kernel image is invalid|"
         r"\bhipErrorNoBinaryForGpu\b"),
         _("Its libraries are not built for the node's GPU."),
         _("Choose an environment whose libraries are built for this GPU model, or a tier with another GPU.")),
        # PyTorch's segments in /dev/shm have names that begin with torch_.
        ("shared-memory", (r"insufficient shared memory|killed by signal: Bus error|(?:/torch_\w+|/dev/shm/).*No space left on device|"
         r"No space left on device.*/dev/shm/"), _("Shared memory (/dev/shm) is full."),
         _("Use fewer loader processes, or choose a tier with more shared memory.")),
        ("threads", (r"can't start new thread|[Uu]nable to create (?:new )?native thread|pthread_create failed|"
         r"\b[Ff]ork\b.*: Resource temporarily unavailable|Cannot fork\b"), _("It could not start another thread or process."),
         _("Limit its threads, for example with OMP_NUM_THREADS, to the tier's cores.")),
        ("dask-memory", r"distributed\.\S*memory.* exceeded \d+% memory budget",
         _("Workers of the Dask cluster ran out of memory."),
         _("Choose a tier with more memory for the workers, or cut the data into smaller partitions.")),
        ("dask-workers", r"\bKilledWorker: ",
         _("The workers of the Dask cluster that had one of its tasks died, often because memory ran out."),
         _("See the workers' logs for why; if it was memory, choose a tier with more for them, or cut the data into smaller partitions.")),
        ("ray-memory", r"^ray\.exceptions\.OutOfMemoryError\b|killed due to (?:the node running low on memory|memory pressure)",
         _("Ray ended tasks because a node of its cluster ran out of memory."),
         _("Choose a tier with more memory for the workers, or let each task work on less data.")),
        ("spark-memory", r"exit(?:ed|ing)? (?:with|caused by|due to).*\b137\b.*(?:OOM|SIGKILL)|ExecutorLostFailure .*\b137\b",
         _("Executors of the Spark cluster were killed, usually because memory ran out."),
         _("Choose a tier with more memory for the workers, or cut the data into more partitions.")),
        ("heap", r"OutOfMemoryError: (?:Java heap space|GC overhead)|JavaScript heap out of memory", _("Its own heap is full."),
         _("Raise its limit (-Xmx, --max-old-space-size, spark.executor.memory or spark.driver.memory): a larger tier alone does not.")),
        ("memory", (r"^(?:\w+\.)*_?(?:Array)?MemoryError\b|java\.lang\.OutOfMemoryError|std::bad_alloc|Cannot allocate memory$|"
         r"cannot allocate vector of size|OOM when allocating tensor|^ERROR: (?:\w+: )*OutOfMemoryError\(\)|"
         r"insufficient memory for the Java Runtime|Native memory allocation \(\w+\) failed"),
         _("It ran out of memory."), _MORE_MEMORY),
        ("killed", (r"^Killed$|: line \d+: +\d+ Killed\b|died with <Signals\.SIGKILL: 9>|\(SIGKILL\) received by PID|"
         r"(?:return|exit) ?(?:code|status) ?[:=]? ?(?:-9|137)\b|terminated with signal SIGKILL|\bBrokenProcessPool: |"
         r"\bTerminatedWorkerError: "),
         _("One of its processes was killed, usually because memory ran out."), _MORE_MEMORY),
        ("format", r"^exec (\S+): exec format error$",
         _("File {} is built for another architecture than the node's, or is a script without a #! line."),
         _("Choose a tier with other nodes, or ask your admin for an image for this architecture; begin a script with #!.")),
        ("line-ends", r"\\r'+: (?:command not found|No such file|\[Errno 2\])|unexpected token .*\\r'|\^M: bad interpreter",
         _("Its script has the line ends of Windows (CRLF)."), _("Save it with those of Unix (LF), for example with dos2unix.")),
        ("interpreter", r"^exec (\S+): no such file or directory$",
         _("File {}, or the program that its first line (#!) names, does not exist in the image."),
         _("Check both; a script with the line ends of Windows (CRLF) names none: save it with those of Unix (LF).")),
        ("processor",
         r"(?:^|: +\d+ )Illegal instruction\b|(?:built using|compiled to use) \S+ instructions|equired CPU features|baseline optimizations",
         _("It used an instruction that the node's processor does not know."),
         _("Choose a tier with other nodes, or packages that are built for this processor.")),
        ("versions",
         r"Version mismatch: The|version mismatch: client|in worker has different|incompatible: stream|pickle protocol:|code\(\) \w+ \d",
         _("Its versions of Python or of the framework are not those of the head."),
         _("Use the same environment, so the same image, for the head, its workers and all that connects to them.")),
        ("python-module", r"^(?:ModuleNotFoundError|ImportError): No module named '?([\w.]+)",
         _("Python module {} is not installed."), _("Install it with pip, or choose an environment that has it.")),
        ("package", r"(?:there is no package called|ArgumentError: Package|Cannot find (?:module|package)) \W{0,3}(@?\w[\w./-]*)",
         _("Package {} is not installed."), _("Install it, or choose an environment that has it.")),
        ("built-for-newer", r"version [`']([\w.]+)' not found|UnsupportedClassVersionError|\b_ARRAY_API not found",
         _("Something in it was built for other versions of its libraries, or of Java, than the environment has."),
         _("Choose an environment with those versions, or build and install it in this one.")),
        ("library", r"([\w.+-]+\.so[\w.]*): cannot open shared object file", _("Library {} is not installed."),
         _("Choose an environment that has it, or ask your admin to add it to the image.")),
        ("pip-conflict", r"^ERROR: (?:ResolutionImpossible|Cannot install .+ because these package versions have conflicting)",
         _("pip found no versions of the packages that fit together."), _("Loosen the pinned versions of your requirements.")),
        ("pip-no-version", r"^ERROR: No matching distribution found for (\S+)", _("pip found no version of {} for this Python."),
         _("Check its name and version, and whether it supports this version of Python.")),
        ("inotify", r"(?:inotify|fsnotify watcher).*(?:[Tt]oo many open files|[Nn]o space left|limit)|number of file watchers",
         _("The node has no inotify instances or watches left."),
         _("Watch fewer files, or ask an operator to raise fs.inotify.max_user_instances and max_user_watches on the nodes.")),
        ("open-files", r"\b[Tt]oo many open files\b|\bEMFILE\b", _("It opened too many files at once."),
         _("Close files and connections that are no longer used, or raise the limit (ulimit -n).")),
        ("disk-full", r"No space left on device|Disk quota exceeded",
         _("The disk is full."), _("Delete files that are no longer needed, or ask your admin for a larger volume.")),
        ("read-only", r"Read-only file system",
         _("It wrote to a read-only file system."), _("Write to the project's folder, to HOME or to /tmp.")),
        ("stale-file", r"Stale (?:NFS )?file handle", _("A file on shared storage changed or went away while it was open."),
         _("Launch it again; if it stays, show this line to an operator.")),
        ("permission", r"^PermissionError: |: Permission denied$|^permission denied\b", _("It has no permission for a file."),
         _("Write to the project's folder, to HOME or to /tmp; check who owns the file.")),
        ("missing-file", r"^FileNotFoundError: \[Errno 2\] No such file or directory: '([^']+)'", _("File {} does not exist."),
         _("Check the path. A job starts in the project's folder; files of a workspace's HOME are at another path.")),
        ("rights", r"forbidden: User \\*\"[^\"]+\" cannot (\w+ resource \\*\"[\w./-]+\\*\")", _("Its account in Kubernetes may not {}."),
         _("Ask your admin to give its service account that right, with a role and a role binding.")),
        ("storage-access", (r"\bAn error occurred \((?:InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken\w*|InvalidToken|403)\)|"
         r"\bNoCredentialsError: |\bDefaultCredentialsError: |\bAnonymous caller does not have\b|\bErrorCode: ?AuthenticationFailed\b"),
         _("The object storage refused its credentials."),
         _("Check the access key in the environment's variables, and what it may read; ask your admin.")),
        # Who is not known is refused before; these know who asks: Amazon and what speaks S3, Google, Azure.
        ("storage-rights", (r"(?:not authorized to perform: |\(AccessDenied\w*\) when calling the |does not have |Permission '|"
         r"to perform action '|Error ?Code: ?)([a-z0-9-]+:[A-Z][\w*]+|[A-Z]\w+ operation|storage\.[\w.]+\w|Microsoft\.[\w./-]+|"
         r"AccessDenied\b|AuthorizationPermissionMismatch\b)"),
         _("The cloud accepted its credentials, but they have no right for this: {}."),
         _("Ask your admin, or who owns the data, for that right; another key or a new launch alone does not help.")),
        ("service-access", r"\b[Gg]ated repo\b|\b40[13] Client Error|HTTP Error 40[13]\b|api_key not configured|[Ii]nvalid API key",
         _("A service refused access: a token is missing, not valid or not enough."),
         _("Give it a valid token. Ask for access to a gated model on its page, or who owns the data.")),
        ("licence", (r"(?i)\blicen[cs]e (?:checkout failed|manager error)|FlexNet Licensing error|no \w+ licen[cs]e found|"
         r"licen[cs]ed number of users already reached"), _("It got no licence of the program that it uses."),
         _("Launch it again later, when others have given theirs back; ask your admin about the licence and its server.")),
        ("throttled", r"\b429 Client Error|HTTP Error 429\b|\bToo Many Requests\b|\bRateLimitError: |\((?:SlowDown|Throttling\w*)\)",
         _("A service takes no more requests from it for a while."),
         _("Try again later, sign in with a token, or keep what it downloads in the project's folder.")),
        ("certificate-server", (r"(?i)certificate (?:has expired|is not yet valid|verify failed: Hostname)|certificate is valid for|"
         r"no alternative certificate subject name|(?:hostname|IP address) mismatch, certificate"),
         _("The certificate of a service has expired or is for another host."),
         _("Check the host in the address; ask who runs the service to renew its certificate.")),
        ("no-tls", r"WRONG_VERSION_NUMBER|wrong version number|first record does not look like a TLS handshake|Unrecognized SSL message",
         _("A service does not speak TLS on that port."),
         _("Check its port, and whether its address or that of the proxy should begin with http:// instead of https://.")),
        ("certificate", r"CERTIFICATE_VERIFY_FAILED|SSL certificate problem:|PKIX path building failed",
         _("The certificate of a service is not trusted."),
         _("Ask your admin to add the certificate authority to the environment's image.")),
        ("mesh",
         r"iptables validation failed|aborting firewall configuration|\biptables\S* v[\d.]+ .*(?:denied|nitialize|rule set generation)",
         _("The service mesh could not redirect the traffic of its pod."),
         _("Ask an operator to look at the mesh: whether its CNI plugin runs on the node, and whether its setup step may have NET_ADMIN.")),
        ("host-name", (r"Temporary failure in name resolution|Name or service not known|Could not resolve host|: no such host|"
         r"\bUnknownHostException\b|\bgetaddrinfo (?:ENOTFOUND|EAI_AGAIN)\b"), _("A host name cannot be resolved."),
         _("Check the host name; ask your admin whether the network policy permits the connection.")),
        ("unreachable", r"\bNetwork is unreachable\b|\bNo route to host\b|E(?:NET|HOST)UNREACH|HTTP 000 CONNECTION FAILED",
         _("A service cannot be reached."),
         _("Check its address; ask your admin whether the network policy permits the connection, or whether it needs a proxy.")),
        ("refused", r"\bConnection refused\b|\bconnection refused\b|^ConnectionRefusedError\b|ECONNREFUSED",
         _("A service refused the connection."), _("Check its address and port, and whether it is running.")),
        ("timed-out",
         r"^(?:\w+\.)*(?:ConnectTimeout|ReadTimeout|ConnectTimeoutError|ReadTimeoutError)\b|: Connection timed out$|ETIMEDOUT",
         _("A service did not answer in time."),
         _("Check its address and whether the network policy permits the connection; try again, or allow it more time.")),
        ("port-in-use", r"\b[Aa]ddress already in use\b|EADDRINUSE",
         _("Another program already listens on its port."), _("Stop the other program, or choose another port.")),
        ("crashed", r"^Segmentation fault\b|: line \d+: +\d+ Segmentation fault\b|^Fatal Python error: Segmentation fault",
         _("One of its processes crashed (segmentation fault)."),
         _("Check the versions of its compiled libraries; they may not fit together.")),
    )
)  # fmt: skip

# What other troubles lead to: these are the cause where nothing else is known.
_CONSEQUENCES = frozenset(f"{BUILT_IN_PREFIX}{key}" for key in ("nccl", "nccl-peer", "pip-no-version"))


@dataclass(frozen=True, slots=True)
class LogFinding:
    """What a line of a log means; `line` is the evidence, `key` is that of the entry."""

    key: str
    meaning: str
    line: str
    cure: str
    link: str = ""


class LogTable:
    """Entries that are searched together: RE2 compares a line with all their patterns in one pass."""

    def __init__(self, patterns: Iterable[LogPattern]) -> None:
        """Raise PatternError when the patterns together are too large."""
        self.patterns = tuple(patterns)
        self._set = ExpressionSet(entry.pattern for entry in self.patterns)

    def findings(self, text: str) -> list[LogFinding]:
        """Return what is known about the end of a log, the last line first, because programs end with the cause; each meaning once, and
        what is known as a consequence after its causes."""
        by_meaning: dict[str, LogFinding] = {}
        for raw in reversed(text.splitlines()[-LAST_LINES:]):
            known = self.of_line(raw)
            if known is not None:
                by_meaning.setdefault(known.meaning, known)
        return sorted(by_meaning.values(), key=lambda known: known.key in _CONSEQUENCES)

    def of_line(self, raw: str) -> LogFinding | None:
        """Return what a line means by the first entry that knows it."""
        line = raw[:_LONGEST_SEARCHED].strip()
        if "\x1b" in line:
            line = _COLOURS.sub("", line).strip()
        written = without_prefix(line)
        matching = self._set.matching(written) if written else None
        if not matching:
            return None
        known = self.patterns[min(matching)]
        return LogFinding(known.key, _meaning(known, written), line[:LONGEST_LINE], known.cure, known.link)


def without_prefix(line: str) -> str:
    """Return what a process wrote, without what its framework put before it."""
    if line[:1] not in _BEGINNINGS:
        return line
    prefix = _PREFIX.match(line)
    return line[prefix.end() :] if prefix is not None else line


def findings(text: str) -> list[LogFinding]:
    """Return what the table in force knows about the end of a log. A fault is logged: it must keep nothing from ending or being shown."""
    try:
        return list(_found(_in_force[0], text))
    except Exception:
        logger.exception("a log was not searched")
        return []


@lru_cache(maxsize=64)  # pages and the controller ask about the same end of a log again and again
def _found(table: LogTable, text: str) -> tuple[LogFinding, ...]:
    return tuple(table.findings(text))


def finding_of(line: str) -> LogFinding | None:
    """Return what the table in force knows about one line, of a log that is shown."""
    try:
        return _in_force[0].of_line(line)
    except Exception:
        logger.exception("a line was not searched")
        return None


def in_force() -> LogTable:
    return _in_force[0]


def use(patterns: Iterable[LogPattern] = BUILT_IN) -> None:
    """Put these entries in force for the process, from any thread."""
    wanted = tuple(patterns)
    if wanted != _in_force[0].patterns:
        _in_force[0] = LogTable(wanted)


def _meaning(known: LogPattern, line: str) -> str:
    """Return the meaning with the pattern's first group in it; an admin's text is no format string."""
    if "{}" not in known.meaning:
        return known.meaning
    return known.meaning.replace("{}", first_group(known.pattern, line).replace('\\"', '"'))[:_LONGEST_MEANING]


_in_force = [LogTable(BUILT_IN)]
