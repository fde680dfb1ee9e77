"""The known lines of logs that come with the product: what programs write when they fail, not words that may stand in any sentence.

A key begins with "grid.", which no id of an admin's own entry does. It is stored with every finding, so it never changes.
"""

from dataclasses import dataclass

from grid.core.translation import gettext as _

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
        ("gpu-memory",
         (r"(?:CUDA|HIP|XPU) out of memory|CUDA error: out of memory|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|"
          r"bad_alloc: out_of_memory: CUDA|CUBLAS_STATUS_ALLOC_FAILED|RESOURCE_EXHAUSTED: Out of memory|"
          r"OOM when allocating tensor .*device:GPU"),
         _("The GPU ran out of memory."),
         _("Use smaller batches or a smaller model, or choose a tier with larger GPUs.")),
        # The driver's own libraries are no part of an image: the node puts them into a container that has a GPU.
        ("no-gpu",
         (r"Found no NVIDIA driver on your system|Torch not compiled with CUDA enabled|no CUDA-capable device is detected|"
          r"CUDA_ERROR_NO_DEVICE|lib(?:cuda|nvidia-[\w-]+)\.so[\w.]*: cannot open shared object file"),
         _("It found no GPU that it can use."),
         _("Choose a tier with GPUs and an environment whose libraries are built for CUDA.")),
        ("gpu-driver",
         r"(?:CUDA|NVIDIA) driver (?:version is insufficient|on your system is too old)|Driver/library version mismatch",
         _("The node's GPU driver is too old for the program's libraries."),
         _("Choose an environment that is built for an older CUDA, or ask an operator to update the driver.")),
        ("gpu-fault", r"uncorrectable (?:NVLink|ECC) error|GPU has fallen off the bus|GPU is lost|NVRM: Xid",
         _("The node's GPU failed."),
         _("Launch it again; show this line to an operator, because the GPU may need a reset or a repair.")),
        ("nccl",
         r"\bnccl(?:UnhandledCuda|System|Internal|Remote)Error\b|NCCL error|Watchdog caught collective operation timeout",
         _("Its processes on several GPUs lost contact with each other (NCCL)."),
         _("Look for the first error of any of them: when one ends, the others report this.")),
        # PyTorch's segments in /dev/shm have names that begin with torch_.
        ("shared-memory",
         (r"insufficient shared memory|killed by signal: Bus error|(?:/torch_\w+|/dev/shm/).*No space left on device|"
          r"No space left on device.*/dev/shm/"),
         _("Shared memory (/dev/shm) is full."),
         _("Use fewer loader processes, or choose a tier with more shared memory.")),
        ("threads", r"can't start new thread|[Uu]nable to create (?:new )?native thread|pthread_create failed",
         _("It could not start another thread."),
         _("Limit its threads, for example with OMP_NUM_THREADS, to the tier's cores.")),
        ("dask-memory", r"distributed\.\S*memory.* exceeded \d+% memory budget|\bKilledWorker: ",
         _("Workers of the Dask cluster ran out of memory."),
         _("Choose a tier with more memory for the workers, or cut the data into smaller partitions.")),
        ("ray-memory",
         r"^ray\.exceptions\.OutOfMemoryError\b|killed due to (?:the node running low on memory|memory pressure)",
         _("Ray ended tasks because a node of its cluster ran out of memory."),
         _("Choose a tier with more memory for the workers, or let each task work on less data.")),
        ("spark-memory",
         r"exit(?:ed|ing)? (?:with|caused by|due to).*\b137\b.*(?:OOM|SIGKILL)|ExecutorLostFailure .*\b137\b",
         _("Executors of the Spark cluster were killed, usually because memory ran out."),
         _("Choose a tier with more memory for the workers, or cut the data into more partitions.")),
        ("memory",
         (r"^(?:\w+\.)*_?(?:Array)?MemoryError\b|java\.lang\.OutOfMemoryError|std::bad_alloc|Cannot allocate memory$|"
          r"cannot allocate vector of size|OOM when allocating tensor|JavaScript heap out of memory|^ERROR: OutOfMemoryError\(\)"),
         _("It ran out of memory."), _MORE_MEMORY),
        ("killed",
         r"^Killed$|: line \d+: +\d+ Killed\b|died with <Signals\.SIGKILL: 9>|\bBrokenProcessPool: |\bTerminatedWorkerError: ",
         _("One of its processes was killed, usually because memory ran out."), _MORE_MEMORY),
        ("python-module", r"^(?:ModuleNotFoundError|ImportError): No module named '?([\w.]+)",
         _("Python module {} is not installed."), _("Install it with pip, or choose an environment that has it.")),
        ("library", r"([\w.+-]+\.so[\w.]*): cannot open shared object file",
         _("Library {} is not installed."),
         _("Choose an environment that has it, or ask your admin to add it to the image.")),
        ("pip-conflict",
         r"^ERROR: (?:ResolutionImpossible|Cannot install .+ because these package versions have conflicting)",
         _("pip found no versions of the packages that fit together."),
         _("Loosen the pinned versions of your requirements.")),
        ("pip-no-version", r"^ERROR: No matching distribution found for (\S+)",
         _("pip found no version of {} for this Python."),
         _("Check its name and version, and whether it supports this version of Python.")),
        ("disk-full", r"No space left on device|Disk quota exceeded",
         _("The disk is full."), _("Delete files that are no longer needed, or ask your admin for a larger volume.")),
        ("read-only", r"Read-only file system",
         _("It wrote to a read-only file system."), _("Write to the project's folder, to HOME or to /tmp.")),
        ("stale-file", r"Stale (?:NFS )?file handle",
         _("A file on shared storage changed or went away while it was open."),
         _("Launch it again; if it stays, show this line to an operator.")),
        ("permission", r"^PermissionError: |: Permission denied$|^permission denied\b",
         _("It has no permission for a file."),
         _("Write to the project's folder, to HOME or to /tmp; check who owns the file.")),
        ("missing-file", r"^FileNotFoundError: \[Errno 2\] No such file or directory: '([^']+)'",
         _("File {} does not exist."),
         _("Check the path. A job starts in the project's folder; files of a workspace's HOME are at another path.")),
        ("storage-access",
         r"\bAn error occurred \((?:AccessDenied|InvalidAccessKeyId|SignatureDoesNotMatch|403)\)|\bNoCredentialsError: ",
         _("The object storage refused its credentials."),
         _("Check the access key in the environment's variables, and what it may read; ask your admin.")),
        ("certificate", r"CERTIFICATE_VERIFY_FAILED|SSL certificate problem:|PKIX path building failed",
         _("The certificate of a service is not trusted."),
         _("Ask your admin to add the certificate authority to the environment's image.")),
        ("host-name",
         (r"Temporary failure in name resolution|Name or service not known|Could not resolve host|: no such host|"
          r"\bUnknownHostException\b|\bgetaddrinfo (?:ENOTFOUND|EAI_AGAIN)\b"),
         _("A host name cannot be resolved."),
         _("Check the host name; ask your admin whether the network policy permits the connection.")),
        ("refused", r"\bConnection refused\b|\bconnection refused\b|^ConnectionRefusedError\b|ECONNREFUSED",
         _("A service refused the connection."), _("Check its address and port, and whether it is running.")),
        ("timed-out",
         r"^(?:\w+\.)*(?:ConnectTimeout|ReadTimeout|ConnectTimeoutError|ReadTimeoutError)\b|: Connection timed out$|ETIMEDOUT",
         _("A service did not answer in time."),
         _("Check its address and whether the network policy permits the connection; try again, or allow it more "
           "time.")),
        ("port-in-use", r"\bAddress already in use\b|EADDRINUSE",
         _("Another program already listens on its port."), _("Stop the other program, or choose another port.")),
        ("crashed",
         r"^Segmentation fault\b|: line \d+: +\d+ Segmentation fault\b|^Fatal Python error: Segmentation fault",
         _("One of its processes crashed (segmentation fault)."),
         _("Check the versions of its compiled libraries; they may not fit together.")),
    )
)  # fmt: skip
