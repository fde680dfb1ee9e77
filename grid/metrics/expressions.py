"""Every PromQL expression that usage and charts are asked with, each with what stands in when its metric is missing; pure.

`A or B` is how a missing metric is bridged: where a cluster's Prometheus has no series of A, those of B are the answer, and where it has
neither, nothing is. So each question stays one query, whatever is scraped.

Rates are over five minutes and in base units, as Kubernetes' own mixins write them; an empty `container` is the pod's whole cgroup, "POD"
its pause container. A `node` label is what all set-ups add to what they scrape of a node.
"""

from collections.abc import Mapping

from grid.core.labels import PLATFORM_NODE, PLATFORM_POOL
from grid.core.regexes import RepeatedExpression, escape

_WINDOW = "5m"
_ROOT = 'id="/"'
_CONTAINERS = 'container!="",container!="POD"'
# What lies in memory or cannot be written fills nothing.
_FILE_SYSTEMS = 'fstype!~"tmpfs|ramfs|devtmpfs|overlay|squashfs|iso9660|erofs|nsfs"'
_DEVICES = 'device=~"/dev/.+",device!="/dev/shm"'
_MEBIBYTE = 2**20
_CAMEL, _NOT_IN_A_NAME = RepeatedExpression(r"([a-z0-9])([A-Z])"), RepeatedExpression(r"[^a-z0-9_]")
_THROTTLED = 0.5  # periods in a second, of 10 that there are
_LIVING = 'max by (namespace, pod) (kube_pod_status_phase{phase=~"Pending|Running"} == 1)'


def escaped(text: str) -> str:
    """Return the text as it stands between the quotes of a matcher."""
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def metric_label(label: str) -> str:
    """Return the name that kube-state-metrics gives a Kubernetes label: snake case, and "_" for what Prometheus does not take."""
    return "label_" + _NOT_IN_A_NAME.sub("_", _CAMEL.sub(r"\1_\2", label).lower())


def _rate(metric: str, matchers: str) -> str:
    return f"rate({metric}{{{matchers}}}[{_WINDOW}])"


def _first_of(*expressions: str) -> str:
    return f"({' or '.join(expressions)})"


def _sums_by(labels: str, *expressions: str) -> str:
    return _first_of(*(f"sum by ({labels}) ({each})" for each in expressions))


# --- The present use, see `grid.metrics.sources` ---
# cAdvisor's metrics, else those of the kubelet's /metrics/resource, which some set-ups scrape alone.


def node_cpu(node: str | None = None) -> str:
    """Return the cores that each node uses, or the one."""
    chosen = _of_node(node)
    cadvisor = _rate("container_cpu_usage_seconds_total", _with(_ROOT, chosen))
    return _sums_by("node", cadvisor, _rate("node_cpu_usage_seconds_total", chosen))


def node_memory(node: str | None = None) -> str:
    """Return the bytes of each node's working set, or the one's."""
    chosen = _of_node(node)
    cadvisor = f"container_memory_working_set_bytes{{{_with(_ROOT, chosen)}}}"
    return _sums_by("node", cadvisor, f"node_memory_working_set_bytes{{{chosen}}}")


def pod_cpu(namespace: str = "") -> str:
    """Return the cores that each pod uses, of all or of a namespace's."""
    chosen = _of_namespace(namespace)
    cadvisor = _rate("container_cpu_usage_seconds_total", _with(_CONTAINERS, chosen))
    return _sums_by("namespace, pod", cadvisor, _rate("pod_cpu_usage_seconds_total", chosen))


def pod_memory(namespace: str = "") -> str:
    """Return the bytes of each pod's working set, of all or of a namespace's."""
    chosen = _of_namespace(namespace)
    cadvisor = f"container_memory_working_set_bytes{{{_with(_CONTAINERS, chosen)}}}"
    return _sums_by("namespace, pod", cadvisor, f"pod_memory_working_set_bytes{{{chosen}}}")


def pods_waiting() -> str:
    """Return the percentage of the time for which each pod waits for CPU, by the kernel's pressure stall information (Kubernetes 1.34). It
    counts a pod that its own limit throttles as waiting; that is no neighbour's doing, so of such a pod it is 0."""
    pods = "max by (namespace, pod)"
    waiting = _rate("container_pressure_cpu_waiting_seconds_total", _CONTAINERS)
    throttled = f"({pods} ({_rate('container_cpu_cfs_throttled_periods_total', _CONTAINERS)}) > {_THROTTLED})"
    return f"100 * {pods} ({waiting}) unless {throttled} or 0 * {throttled}"


def _with(*matchers: str) -> str:
    return ",".join(filter(None, matchers))


def _of_node(node: str | None) -> str:
    return "" if node is None else f'node="{escaped(node)}"'


def _of_namespace(namespace: str) -> str:
    return f'namespace="{escaped(namespace)}"' if namespace else ""


# --- The pools' past, see `grid.metrics.history` ---


def pool_columns(pool: str | None, pool_label: str) -> dict[str, str]:
    """Return an expression for each column of `PoolSample`, of all pools but platform nodes with None; `pool_label` as it names it."""
    compute = f'{pool_label}!="{PLATFORM_POOL}",{metric_label(PLATFORM_NODE)}!="true"'  # true of a missing label too
    chosen = f'{pool_label}="{escaped(pool)}"' if pool is not None else compute
    nodes = f"group by (node) (kube_node_labels{{{chosen}}})"

    def on_nodes(each: str) -> str:
        return f"sum({each} * on (node) group_left () {nodes})"

    def requested(resource: str) -> str:
        asked = f"kube_pod_container_resource_requests{{resource{resource}}}"
        return on_nodes(f"sum by (node) ({asked} * on (namespace, pod) group_left () {_LIVING})")

    def allocatable(resource: str) -> str:
        return on_nodes(f"sum by (node) (kube_node_status_allocatable{{resource{resource}}})")

    ready = 'max by (node) (kube_node_status_condition{condition="Ready",status="true"})'
    cpu, memory, gpu = '="cpu"', '="memory"', '=~".+_gpu"'
    return {
        "nodes": f"count({nodes})",
        "nodes_ready": on_nodes(ready),
        "requested_millicores": f"1000 * {requested(cpu)}",
        "allocatable_millicores": f"1000 * {allocatable(cpu)}",
        "used_millicores": f"1000 * {on_nodes(node_cpu())}",
        "requested_mebibytes": f"{requested(memory)} / {_MEBIBYTE}",
        "allocatable_mebibytes": f"{allocatable(memory)} / {_MEBIBYTE}",
        "used_mebibytes": f"{on_nodes(node_memory())} / {_MEBIBYTE}",
        "requested_gpus": requested(gpu),
        "allocatable_gpus": allocatable(gpu),
    }


def in_columns(expressions: Mapping[str, str]) -> str:
    """Return one expression for all, told apart by the label `column`."""
    return " or ".join(f'label_replace({each}, "column", "{name}", "", "")' for name, each in expressions.items())


# --- The past of a node, a pod, or an execution, see `grid.metrics.history` ---
# cAdvisor's network and older disk metrics are of the pod's whole cgroup; "lo" and bridges would count what never leaves.


def node_columns(node: str) -> dict[str, str]:
    """Return an expression for each column of a node's charts; cores, bytes, bytes a second, and percent."""
    chosen = _of_node(node)
    asked, has = "kube_pod_container_resource_requests", "kube_node_status_allocatable"
    living = f"* on (namespace, pod) group_left () {_LIVING}"
    columns = {"cpu_used": f"sum({node_cpu(node)})", "memory_used": f"sum({node_memory(node)})"}
    for resource in ("cpu", "memory"):
        of = _with(chosen, f'resource="{resource}"')
        columns[f"{resource}_requested"] = f"sum({asked}{{{of}}} {living})"
        columns[f"{resource}_limit"] = f"sum({has}{{{of}}})"
    return {
        **columns,
        "gpu": _first_of(
            f"avg(DCGM_FI_DEV_GPU_UTIL{{{chosen}}})", f'avg(DCGM_FI_DEV_GPU_UTIL{{Hostname="{escaped(node)}"}})'
        ),
        "throttled": _first_of(*(f"100 * max({_rate(*each)})" for each in _node_pressures(chosen))),
        "filesystem": f"max({_first_of(*_node_filesystems(chosen))})",
        **{name: _sums(*counters) for name, counters in _node_counters(chosen).items()},
    }


def _node_counters(chosen: str) -> dict[str, tuple[tuple[str, str], ...]]:
    """Return the counters of bytes that nodes read, wrote, received and sent, each with what stands in for it."""
    root, device = _with(_ROOT, chosen), _with(chosen, 'device!~"lo|veth.*|cali.*|cni.*"')
    return {
        "read": (("container_fs_reads_bytes_total", root), ("node_disk_read_bytes_total", chosen)),
        "written": (("container_fs_writes_bytes_total", root), ("node_disk_written_bytes_total", chosen)),
        "received": (("container_network_receive_bytes_total", root), ("node_network_receive_bytes_total", device)),
        "sent": (("container_network_transmit_bytes_total", root), ("node_network_transmit_bytes_total", device)),
    }


def _node_pressures(chosen: str) -> tuple[tuple[str, str], ...]:
    root = _with(_ROOT, chosen)
    return ("container_pressure_cpu_waiting_seconds_total", root), ("node_pressure_cpu_waiting_seconds_total", chosen)


def pool_use_columns(pool: str, pool_label: str) -> dict[str, str]:
    """Return an expression for each column of a pool's charts that no sample has: bytes a second are summed over its nodes, GPUs averaged;
    waiting for CPU and a file system's fullness, of which sums say nothing, are those of the node that has most. `pool_label` as in
    `pool_columns`. What stands in for a missing metric does so for each node."""
    nodes = f'group by (node) (kube_node_labels{{{pool_label}="{escaped(pool)}"}})'

    def over(function: str, *each: str) -> str:
        return f"{function}({_first_of(*each)} * on (node) group_left () {nodes})"

    # The exporter says the node's name in its own label; where a scrape adds `node` too, both are the same.
    named = 'label_replace(DCGM_FI_DEV_GPU_UTIL{Hostname!=""}, "node", "$1", "Hostname", "(.+)")'
    return {
        "gpu": over("avg", 'avg by (node) (DCGM_FI_DEV_GPU_UTIL{node!=""})', f"avg by (node) ({named})"),
        "throttled": "100 * " + over("max", *(f"max by (node) ({_rate(*each)})" for each in _node_pressures(""))),
        "filesystem": over("max", *_node_filesystems("")),
        **{
            name: over("sum", *(f"sum by (node) ({_rate(*each)})" for each in counters))
            for name, counters in _node_counters("").items()
        },
    }


def pods_columns(namespace: str, name: str, *, with_prefix: bool = False) -> dict[str, str]:
    """Return an expression for each column of a pod's charts; `with_prefix` adds the pods whose names go on after a dash."""
    pod = f'"{escaped(name)}"' if not with_prefix else f'"{escaped(escape(name))}(-.*)?"'
    sign = "=~" if with_prefix else "="
    chosen = f'namespace="{escaped(namespace)}",pod{sign}{pod}'
    exported = f'exported_namespace="{escaped(namespace)}",exported_pod{sign}{pod}'
    containers = _with(_CONTAINERS, chosen)
    memory = f"container_memory_working_set_bytes{{{containers}}}"
    columns = {
        "cpu_used": _sums(("container_cpu_usage_seconds_total", containers), ("pod_cpu_usage_seconds_total", chosen)),
        "memory_used": _first_of(f"sum({memory})", f"sum(pod_memory_working_set_bytes{{{chosen}}})"),
    }
    for resource in ("cpu", "memory"):
        of = _with(chosen, f'resource="{resource}"')
        columns[f"{resource}_requested"] = f"sum(kube_pod_container_resource_requests{{{of}}})"
        columns[f"{resource}_limit"] = f"sum(kube_pod_container_resource_limits{{{of}}})"
    throttled, periods = (
        _rate(f"container_cpu_cfs_{each}_total", containers) for each in ("throttled_periods", "periods")
    )
    return {
        **columns,
        "gpu": _first_of(f"avg(DCGM_FI_DEV_GPU_UTIL{{{exported}}})", f"avg(DCGM_FI_DEV_GPU_UTIL{{{chosen}}})"),
        "throttled": _first_of(
            f"100 * max({_rate('container_pressure_cpu_waiting_seconds_total', containers)})",
            f"100 * sum({throttled}) / sum({periods})",
        ),
        "volume": _pod_volumes(namespace, chosen),
        "read": _sums(
            ("container_fs_reads_bytes_total", containers),
            ("container_blkio_device_usage_total", _with(containers, 'operation="Read"')),
        ),
        "written": _sums(
            ("container_fs_writes_bytes_total", containers),
            ("container_blkio_device_usage_total", _with(containers, 'operation="Write"')),
        ),
        "received": _sums(("container_network_receive_bytes_total", _with(chosen, 'interface!="lo"'))),
        "sent": _sums(("container_network_transmit_bytes_total", _with(chosen, 'interface!="lo"'))),
    }


def _node_filesystems(chosen: str) -> tuple[str, str]:
    """Return how full the fullest file system of each node is, in percent: of node_exporter's, else of cAdvisor's."""
    exported = _with(chosen, _FILE_SYSTEMS)
    of_node = _with(_ROOT, chosen, _DEVICES)
    has = f"(node_filesystem_size_bytes{{{exported}}} > 0)"
    return (
        f"max by (node) (100 - 100 * node_filesystem_avail_bytes{{{exported}}} / {has})",
        f"max by (node) (100 * container_fs_usage_bytes{{{of_node}}} / (container_fs_limit_bytes{{{of_node}}} > 0))",
    )


def _pod_volumes(namespace: str, chosen: str) -> str:
    """Return how full the fullest volume of the pods is, in percent. The kubelets know volumes by their claims, and each node that has it
    mounted tells of it; only kube-state-metrics knows whose pods' claims they are."""
    claim, of = "namespace, persistentvolumeclaim", f'namespace="{escaped(namespace)}"'
    used = f"kubelet_volume_stats_used_bytes{{{of}}} / (kubelet_volume_stats_capacity_bytes{{{of}}} > 0)"
    claims = f"group by ({claim}) (kube_pod_spec_volumes_persistentvolumeclaims_info{{{chosen}}})"
    return f"100 * max(max by ({claim}) ({used}) and on ({claim}) {claims})"


def _sums(*counters: tuple[str, str]) -> str:
    """Return the sum of a counter's rates, of the first counter that has any."""
    return _first_of(*(f"sum({_rate(*each)})" for each in counters))
