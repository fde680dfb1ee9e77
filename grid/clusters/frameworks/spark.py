"""Spark: a standalone master as the head, standalone workers, and their reports.

The commands need an image with pyspark or a SPARK_HOME, bash, and Java 17 or later. An application gets one executor on each worker, of all
its cores and of the memory that its tier leaves beside the worker's own process; executors are allocated dynamically, so that applications
share the workers and an idle one gives them back. A worker that ends is decommissioned: its executors take no new tasks, finish theirs and
give their blocks of shuffles and cached data to the other workers.
"""

from collections.abc import Mapping, Sequence

import aiohttp

from grid.clusters.frameworks import base
from grid.clusters.frameworks.spark_status import ask
from grid.core.quantity import millicores, whole
from grid.executions.spec import ExecutionSpec, TierSpec

MASTER_PORT, MASTER_UI_PORT = 7077, 8080
WORKER_PORT, WORKER_UI_PORT = 7078, 8081
DRIVER_UI_PORT = 4040
_MIB = 2**20
# The worker's own process: its heap, and what a small Java process takes beside it.
_WORKER_HEAP, _WORKER_BESIDE = 128, 128
# Beside an executor's heap live its threads and buffers, and the Python processes of its tasks.
_LEAST_BESIDE, _SHARE_BESIDE = 384, 0.3
_LEAST_EXECUTOR = 450  # Spark refuses to start one with less
_LEAST_HEAD_HEAP, _MOST_HEAD_HEAP = 256, 4096
_PID_FILE = f"{base.LOCAL_PATH}/worker.pid"
_DRAIN_MARGIN_SECONDS = 2

# Finds Spark in the image, and becomes it. A user without a name cannot log in to Hadoop's libraries, hence the wrapper that
# Spark's own images bring for it. No `$` stands where the kubelet would look for a variable of its own.
# Python looks in the working directory first, which is the project's: a `pyspark.py` in there is not Spark. (`python3 -I` would also miss
# a Spark that PYTHONPATH names, or that the user installed.)
_START = r"""
if [ -z "${SPARK_HOME:-}" ]; then
  SPARK_HOME=`python3 -c '
import sys
sys.path[:] = filter(None, sys.path)
from importlib.util import find_spec
print(find_spec("pyspark").submodule_search_locations[0])' 2>/dev/null`
fi
if [ ! -x "$SPARK_HOME/bin/spark-class" ]; then
  echo "There is no Spark in this image: it needs the Python package pyspark, or SPARK_HOME." >&2
  exit 1
fi
if [ -z "${JAVA_HOME:-}" ] && ! command -v java >/dev/null; then
  echo "Spark needs Java 17, and there is no java in this image." >&2
  exit 1
fi
export SPARK_HOME
if command -v getent >/dev/null && ! getent passwd `id -u` >/dev/null; then
  for wrapper in /usr/lib/libnss_wrapper.so /usr/lib/*/libnss_wrapper.so; do
    if [ -s "$wrapper" ]; then
      export LD_PRELOAD="$wrapper" NSS_WRAPPER_PASSWD=`mktemp` NSS_WRAPPER_GROUP=`mktemp`
      echo "spark:x:`id -u`:`id -g`:Spark:$HOME:/bin/false" > "$NSS_WRAPPER_PASSWD"
      echo "spark:x:`id -g`:" > "$NSS_WRAPPER_GROUP"
      break
    fi
  done
  if [ -z "${NSS_WRAPPER_PASSWD:-}" ]; then
    echo "Spark will not start: user `id -u` has no name in this image. Add the user, or the package libnss-wrapper." >&2
  fi
fi
"""
_BECOME = 'exec "$SPARK_HOME/bin/spark-class" "$@"\n'
# The shell's own process id, which the worker keeps because the shell becomes it.
_NOTE_PID = f"sh -c 'echo \"$PPID\"' > {_PID_FILE}\n"
# The worker informs the master, the master the applications, and they their executors. An executor is a child of its worker; signalled
# directly, it is decommissioned even without the master. It ends by itself once its tasks are done and its blocks are elsewhere.
# Spark's own launcher leaves zombie children (Z) behind.
_DECOMMISSION = f"""
worker=`cat {_PID_FILE}` || exit 0
end=$((`date +%s` + $1))
executors() {{
  for child in `cat /proc/$worker/task/*/children 2>/dev/null`; do
    grep -qs '^State:[[:space:]]*[^Z[:space:]]' "/proc/$child/status" && echo "$child"
  done
}}
kill -PWR "$worker" || exit 0
sleep 2
for executor in `executors`; do
  kill -PWR "$executor"
done
while [ -d "/proc/$worker" ]; do
  if [ -e "/proc/$worker/task/$worker/children" ] && [ -z "`executors`" ]; then
    exit 0
  fi
  if [ "`date +%s`" -gt "$end" ]; then
    echo "The drain time is over, and executors still have work or data." >&2
    exit 1
  fi
  sleep 1
done
"""


class Spark:
    name = "spark"
    ui_port = MASTER_UI_PORT
    strips_prefix = True
    calls_back = True  # executors to the driver at any port, and the master's proxy to its page

    def head(self, spec: ExecutionSpec) -> base.Program:
        heap = min(max(_mebibytes(base.cluster_of(spec).head_tier) // 2, _LEAST_HEAD_HEAP), _MOST_HEAD_HEAP)
        settings = {
            # Another way to submit programs, without authentication.
            "spark.master.rest.enabled": "false",
            # Redirects lead back below our own path; only the master sets it, as it serves all pages of workers and drivers.
            "spark.ui.proxyRedirectUri": "/",
            # A master that crashes finds its applications and workers again, and they go on.
            "spark.deploy.recoveryMode": "FILESYSTEM",
            "spark.deploy.recoveryDirectory": f"{base.LOCAL_PATH}/recovery",
        }
        master = ("--host", base.POD_IP, "--port", str(MASTER_PORT), "--webui-port", str(MASTER_UI_PORT))
        return base.Program(
            command=("sh", "-c", _START + _BECOME, "spark", "org.apache.spark.deploy.master.Master", *master),
            ports=(base.Port("spark", MASTER_PORT), base.Port("ui", MASTER_UI_PORT)),
            variables=_daemon(spec, heap, settings),
            readiness=base.http_probe("/", MASTER_UI_PORT, period=2, failures=15),
            liveness=base.http_probe("/", MASTER_UI_PORT, period=10, failures=6, delay=60),
        )

    def worker(self, spec: ExecutionSpec, head_address: str) -> base.Program:
        settings = {
            # The head is known by its Service's address, which is not the one that its process listens on.
            "spark.worker.preferConfiguredMasterAddress": "true",
            "spark.worker.cleanup.enabled": "true",
            "spark.worker.cleanup.interval": "600",
            "spark.worker.cleanup.appDataTtl": "86400",
            "spark.executor.logs.rolling.strategy": "size",
            "spark.executor.logs.rolling.maxSize": str(16 * _MIB),
            "spark.executor.logs.rolling.maxRetainedFiles": "4",
        }
        worker = (
            *("--host", base.POD_IP, "--port", str(WORKER_PORT), "--webui-port", str(WORKER_UI_PORT)),
            *("--cores", str(worker_cores(spec.tier)), "--memory", f"{executor_mebibytes(spec.tier)}m"),
            *("--work-dir", f"{base.LOCAL_PATH}/work", _master(head_address)),
        )
        start = _START + _NOTE_PID + _BECOME
        drain_seconds = max(base.cluster_of(spec).drain_seconds - _DRAIN_MARGIN_SECONDS, 1)
        own = {"SPARK_LOCAL_DIRS": base.LOCAL_PATH, "PYSPARK_PYTHON": "python3"}
        return base.Program(
            command=("sh", "-c", start, "spark", "org.apache.spark.deploy.worker.Worker", *worker),
            ports=(base.Port("spark", WORKER_PORT), base.Port("ui", WORKER_UI_PORT)),
            variables=_daemon(spec, _WORKER_HEAP, settings) | own,
            # Its executors may keep the machine so busy that it answers late. Ending it would lose their work, and Kubernetes ends
            # workers that are not ready first.
            readiness=base.http_probe("/", WORKER_UI_PORT, period=2, failures=60),
            liveness=base.http_probe("/", WORKER_UI_PORT, period=10, failures=12, delay=60),
            pre_stop=("sh", "-c", _DECOMMISSION, "decommission", str(drain_seconds)),
        )

    def client_variables(self, spec: ExecutionSpec, head_address: str) -> Mapping[str, str]:
        master = _master(head_address)
        return {
            "SPARK_MASTER": master,
            "SPARK_MASTER_URL": master,
            "SPARK_MASTER_HOST": head_address,
            "SPARK_MASTER_PORT": str(MASTER_PORT),
            # What Spark itself reads: its submission takes the master from MASTER and all else from the options of its Java
            # process. Both are defaults, so whatever a program or a command line says of its own still counts.
            "MASTER": master,
            "SPARK_SUBMIT_OPTS": _options(_driver_settings(spec)),
            "SPARK_LOCAL_IP": base.POD_IP,
            "PYSPARK_PYTHON": "python3",
        }

    async def ask(
        self, http: aiohttp.ClientSession, head_ip: str, spec: ExecutionSpec, workers: Sequence[base.WorkerPod]
    ) -> base.ClusterReport:
        return await ask(http, f"http://{head_ip}:{MASTER_UI_PORT}", worker_cores(spec.tier), workers)


def worker_cores(tier: TierSpec) -> int:
    """Return how many tasks a worker runs at once: its cores rounded up, so that it can use all of them and exceed a CPU target."""
    return max(-(-millicores(tier.cores_limit) // 1000), 1)


def executor_mebibytes(tier: TierSpec) -> int:
    """Return the heap of a worker's executor in MiB; it, its Python processes and the worker's own process stay within the limit."""
    rest = _mebibytes(tier) - _WORKER_HEAP - _WORKER_BESIDE
    return max(rest - max(_LEAST_BESIDE, int(rest * _SHARE_BESIDE)), _LEAST_EXECUTOR)


def _driver_settings(spec: ExecutionSpec) -> dict[str, str]:
    return {
        "spark.driver.host": base.POD_IP,
        "spark.driver.bindAddress": base.POD_IP,
        "spark.ui.port": str(DRIVER_UI_PORT),
        # Bars drawn over and over make one endless line of a job's log, and nobody sees them in a notebook.
        "spark.ui.showConsoleProgress": "false",
        "spark.executor.cores": str(worker_cores(spec.tier)),
        "spark.executor.memory": f"{executor_mebibytes(spec.tier)}m",
        # An idle executor's heap goes back to the machine, or a cluster that follows its memory would never shrink.
        "spark.executor.extraJavaOptions": "-XX:+UseG1GC -XX:G1PeriodicGCInterval=30000",
        "spark.dynamicAllocation.enabled": "true",
        # Decommissioned executors give their blocks to others, so nobody needs to wait until shuffles are forgotten.
        "spark.dynamicAllocation.shuffleTracking.enabled": "false",
        "spark.dynamicAllocation.initialExecutors": str(base.cluster_of(spec).workers_minimum),
        "spark.dynamicAllocation.executorIdleTimeout": "120s",
        "spark.stage.ignoreDecommissionFetchFailure": "true",
        **_shared_settings(spec),
    }


def _shared_settings(spec: ExecutionSpec) -> dict[str, str]:
    return {
        "spark.ui.reverseProxy": "true",
        **({"spark.ui.reverseProxyUrl": spec.base_url.rstrip("/")} if spec.base_url != "/" else {}),
        "spark.decommission.enabled": "true",
        "spark.storage.decommission.enabled": "true",
        "spark.storage.decommission.rddBlocks.enabled": "true",
        "spark.storage.decommission.shuffleBlocks.enabled": "true",
        # An executor exits when a check finds nothing left to migrate; by default the second check is after 30 seconds.
        "spark.storage.decommission.replicationReattemptInterval": "2s",
    }


def _daemon(spec: ExecutionSpec, heap: int, settings: Mapping[str, str]) -> dict[str, str]:
    return {
        "SPARK_LOCAL_IP": base.POD_IP,
        "SPARK_DAEMON_MEMORY": f"{heap}m",
        "SPARK_DAEMON_JAVA_OPTS": f"-XX:+UseSerialGC {_options(_shared_settings(spec) | dict(settings))}",
    }


def _options(settings: Mapping[str, str]) -> str:
    """Return the options as one text, quoted as Spark's launcher splits them: like a shell."""
    options = (f"-D{name}={value}" for name, value in settings.items())
    return " ".join(f'"{option}"' if " " in option else option for option in options)


def _master(head_address: str) -> str:
    return f"spark://{head_address}:{MASTER_PORT}"


def _mebibytes(tier: TierSpec) -> int:
    return whole(tier.memory_limit) // _MIB
