"""Of each rule about the lines of a log: a line to which it applies, and one that is merely like it."""

LOGS: dict[str, dict[str, tuple[str, str]]] = {
    "logfindings.BUILT_IN": {
        "grid.gpu-memory": ("RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB.", "CUDA memory: 3 of 16 GiB"),
        "grid.no-gpu": ("AssertionError: Torch not compiled with CUDA enabled", "found 2 NVIDIA GPUs, driver 550"),
        "grid.gpu-driver": (
            "RuntimeError: The NVIDIA driver on your system is too old (found version 11040).",
            "the NVIDIA driver on your system is 550",
        ),
        "grid.gpu-model": ("RuntimeError: CUDA error: no kernel image is available for execution on the device", "kernel image: 6.12"),
        "grid.format": ("exec /usr/local/bin/python: exec format error", "the exec format error of yesterday is repaired"),
        "grid.gpu-fault": ("RuntimeError: CUDA error: uncorrectable ECC error encountered", "0 correctable ECC errors on GPU 0"),
        "grid.nccl": (
            "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1275, unhandled system error",
            "NCCL version 2.21.5+cuda12.4",
        ),
        "grid.shared-memory": (
            "RuntimeError: DataLoader worker (pid 71) is killed by signal: Bus error.",
            "RuntimeError: DataLoader worker (pid 71) exited, its memory is shared no more",
        ),
        "grid.threads": ("RuntimeError: can't start new thread", "starting 4 new threads"),
        "grid.dask-memory": (
            "distributed.nanny.memory - WARNING - Worker tcp://10.9.0.3:40111 (pid=31) exceeded 95% memory budget. Restarting...",
            "distributed.worker.memory - INFO - Worker is at 60% memory usage. Resuming worker.",
        ),
        "grid.ray-memory": (
            "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.",
            "the node was running low on disk",
        ),
        "grid.spark-memory": (
            "The executor with id 3 exited with exit code 137(SIGKILL, possible container OOM).",
            "The executor with id 3 exited with exit code 0(success).",
        ),
        "grid.heap": ("java.lang.OutOfMemoryError: GC overhead limit exceeded", "the Java heap space is 4 GiB"),
        "grid.memory": ("MemoryError", "except MemoryError: is handled by smaller chunks"),
        "grid.killed": ("Killed", "Killed 3 workers, as asked"),
        "grid.line-ends": ("run.sh: line 2: $'\\r': command not found", "received b'OK\\r'"),
        "grid.interpreter": ("exec /mnt/project/run.sh: no such file or directory", "exec /mnt/project/run.sh: permission denied"),
        "grid.processor": (
            "run.sh: line 3:    71 Illegal instruction     (core dumped) ./train",
            "the illegal instruction of 4 files is skipped",
        ),
        "grid.versions": ("RuntimeError: Version mismatch: The cluster was started with:", "the cluster was started with Ray 2.49.0"),
        "grid.python-module": ("ModuleNotFoundError: No module named 'polars'", "No module named anything is not an error"),
        "grid.library": ("ImportError: libGL.so.1: cannot open shared object file: No such file or directory", "libGL.so.1 opened"),
        "grid.pip-conflict": (
            "ERROR: Cannot install a==1 and b==2 because these package versions have conflicting dependencies.",
            "pip checked that no package versions have conflicting dependencies",
        ),
        "grid.pip-no-version": ("ERROR: No matching distribution found for torch==9.9", "matching distribution found for torch"),
        "grid.inotify": ("inotify_add_watch /data: no space left on device", "inotify watches /data"),
        "grid.open-files": ("OSError: [Errno 24] Too many open files: 'a.csv'", "opened many files: 3000"),
        "grid.disk-full": ("OSError: [Errno 28] No space left on device: '/mnt/project/a'", "space left on device: 3 GiB"),
        "grid.read-only": ("OSError: [Errno 30] Read-only file system: '/etc/a'", "the file system is read-only after midnight"),
        "grid.stale-file": ("OSError: [Errno 116] Stale file handle: '/mnt/project/a'", "opened a file handle that is not stale"),
        "grid.permission": (
            "PermissionError: [Errno 13] Permission denied: '/data/a'",
            "the list of users whose permission denied them access",
        ),
        "grid.missing-file": (
            "FileNotFoundError: [Errno 2] No such file or directory: 'data/train.csv'",
            "no such file or directory is expected here: data/old.csv, skipped",
        ),
        "grid.storage-access": (
            "ClientError: An error occurred (AccessDenied) when calling the GetObject operation: Access Denied",
            "AccessDenied is handled: falling back to the public bucket",
        ),
        "grid.service-access": ("OSError: You are trying to access a gated repo.", "got 401 rows of 403"),
        "grid.throttled": ("HTTPError: 429 Client Error: Too Many Requests for url: https://huggingface.co/api", "read 429 rows"),
        "grid.certificate": ("curl: (60) SSL certificate problem: self-signed certificate", "the SSL certificate is valid until 2027"),
        "grid.host-name": ("curl: (6) Could not resolve host: db.example", "resolved host db.example"),
        "grid.refused": ("ConnectionRefusedError: [Errno 111] Connection refused", "connection accepted; nobody refused"),
        "grid.timed-out": (
            "psql: error: connection to server at 10.0.0.1, port 5432 failed: Connection timed out",
            "read timed out after 3 s, trying again (1 of 5)",
        ),
        "grid.port-in-use": ("OSError: [Errno 98] Address already in use", "the address is in use by us"),
        "grid.crashed": ("Fatal Python error: Segmentation fault", "segmentation of the images: faults 3 %"),
    },
}  # fmt: skip
