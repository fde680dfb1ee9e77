"""Of each rule about messages: one to which it applies, and one that is merely like it, as (applies, is like).

Both are what Kubernetes, the container runtimes, registries and programs write; of rules by an exact reason or code, its neighbour.
"""

from tests.diagnosis.log_examples import LOGS
from tests.diagnosis.refusal_examples import REFUSALS

_PULL = 'failed to pull and unpack image "r.example/lab:4": failed to resolve reference "r.example/lab:4": '
_HEAD = 'failed to do request: Head "https://r.example/v2/lab/manifests/4": '
_X509 = _HEAD + "tls: failed to verify certificate: x509: "
_CREATE = (
    "OCI runtime create failed: runc create failed: unable to start container process: error during container init: "
)
_MOUNT = 'MountVolume.SetUp failed for volume "data" : '
_MULTI = 'Multi-Attach error for volume "pvc-1" Volume is already '

EXAMPLES: dict[str, dict[str, tuple[str, str]]] = {
    "images.PULL_FAILURES": {
        "platform": (_PULL + "no match for platform in manifest: not found", _PULL + "r.example/lab:4: not found"),
        "proxy-login": (_HEAD + "Proxy Authentication Required", _PULL + "unexpected status code 401 Unauthorized"),
        "proxy": (_HEAD + "proxyconnect tcp: dial tcp 10.0.0.3:3128: connect: connection refused", _HEAD + "dial tcp: connection refused"),
        "rate-limit": (_PULL + "unexpected status code 429 Too Many Requests", _PULL + "unexpected status code 403 Forbidden"),
        "old-format": ('media type "manifest.v1+prettyjws" is no longer supported since containerd v2.1', 'no "manifest.v2+json"'),
        "web-page": (_PULL + "unexpected media type text/html for sha256:9a1f: not found", _PULL + "unexpected media type: not found"),
        "vulnerable": (
            _PULL + "412 Precondition Failed - Server message: projectpolicyviolation: image with 12 vulnerabilities cannot be pulled",
            _PULL + "403 Forbidden - Server message: the project has vulnerabilities",
        ),
        "layers": (
            "failed to copy: httpReadSeeker: failed open: failed to do request: Get: dial tcp 52.219.47.1:443: i/o timeout",
            "failed to copy: httpReadSeeker: failed open: content at https://r.example/v2/blobs not found: i/o timeout",
        ),
        "node-refused": (
            _PULL + '403 Forbidden: Permission "artifactregistry.repositories.downloadArtifacts" denied on resource',
            _PULL + "403 Forbidden: denied on resource of artifactregistry",
        ),
        "disk-full": ("failed to extract layer: write /var/lib/layer: no space left on device", "write /var/lib/layer: input/output error"),
        "host-name": (_HEAD + "dial tcp: lookup r.example on 10.96.0.10:53: no such host", _HEAD + "dial tcp 10.0.0.9:443: i/o timeout"),
        "timed-out": (
            _HEAD + "net/http: TLS handshake timeout",
            _HEAD + "dial tcp: lookup r.example on 10.96.0.10:53: read udp: i/o timeout",
        ),
        "broken-off": (_PULL + "short read: expected 3187671040 bytes but got 1048576: unexpected EOF", _HEAD + "unexpected EOF"),
        "connection": (_HEAD + "dial tcp 10.0.0.9:443: connect: connection refused", _HEAD + "dial tcp 10.0.0.9:443: i/o timeout"),
        "plain-http": (_HEAD + "http: server gave HTTP response to HTTPS client", _HEAD + "tls: first record does not look like TLS"),
        "certificate-of-another-host": (
            _X509 + "certificate is valid for other.example, not r.example",
            _X509 + "certificate signed by unknown authority",
        ),
        "certificate-too-early": (
            _X509 + "certificate has expired or is not yet valid: current time 2026-03-04T09:00:00Z is before 2026-03-05T00:00:00Z",
            _X509 + "certificate has expired or is not yet valid: current time 2026-03-04T09:00:00Z is after 2026-03-01T00:00:00Z",
        ),
        "certificate-expired": (
            _X509 + "certificate has expired or is not yet valid: current time 2026-03-04T09:00:00Z is after 2026-03-01T00:00:00Z",
            _X509 + "certificate has expired or is not yet valid: current time 2026-03-04T09:00:00Z is before 2026-03-05T00:00:00Z",
        ),
        "certificate-out-of-time": (
            _X509 + "certificate has expired or is not yet valid",
            _X509 + "certificate has expired or is not yet valid: current time 2026-03-04T09:00:00Z is after 2026-03-01T00:00:00Z",
        ),
        "certificate-untrusted": (
            _X509 + "certificate signed by unknown authority",
            _X509 + "certificate is valid for other.example, not r.example",
        ),
        "access": (
            _PULL + "pull access denied, repository does not exist or may require authorization: insufficient_scope",
            _PULL + "repository does not exist",
        ),
        "never-pulled": (
            'Container image "lab:4" is not present with pull policy of Never',
            'Container image "lab:4" already present on machine',
        ),
        "signature": ("SignatureValidationFailed: image pull failed for lab:4", "ErrImagePull: image pull failed for lab:4"),
        "invalid-name": ('couldn\'t parse image name "lab:": invalid reference format', _PULL + "r.example/lab:4: not found"),
        "no-such-image": (
            "reading manifest 4 in r.example/lab: manifest unknown",
            "reading manifest 4 in r.example/lab: requested access to the resource is denied",
        ),
        "pull-qps": ("ErrImagePull: pull QPS exceeded", "ErrImagePull: toomanyrequests: pull rate limit exceeded"),
        "registry-error": (
            _PULL + "unexpected status from HEAD request: 503 Service Unavailable",
            "failed to copy: read 5030 of 9000 bytes",
        ),
    },
    "complaints.COMPLAINTS": {
        "volume-limit": ("node(s) exceed max volume count", "node(s) had volume node affinity conflict"),
        "one-pod": (
            "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode",
            "pod has unbound immediate PersistentVolumeClaims",
        ),
        "storage-room": ("node(s) did not have enough free storage", "Insufficient ephemeral-storage"),
        "storage-driver": ("node(s) did not have the CSI driver csi.example installed", "node(s) were unschedulable"),
        "lost-node": (
            "node(s) unavailable due to one or more pvc(s) bound to non-existent node",
            "node(s) didn't match PersistentVolume's node affinity",
        ),
        "device-class": ('request gpu: device class "h100" does not exist', "device plugin restarted"),
        "device-claim": ("cannot allocate all claims", "node(s) had untolerated taint"),
        "port": ("node(s) didn't have free ports for the requested pod ports", "node(s) didn't have a free address"),
        "other-pods": ("node(s) didn't match pod anti-affinity rules", "node(s) didn't match Pod's node affinity/selector"),
        "gang": ("pre-filter pod p cannot find enough sibling pods, minMember of group: 8", "node(s) have too many pods of its group"),
        "node-feature": ("node declared features check failed - unsatisfied requirements: X", "node(s) were unschedulable"),
    },
    "exits.NODE_FAULTS": {
        "user-namespaces": ("handler does not support user namespaces", "handler failed to set up a user namespace"),
        "runtime-handler": ('failed to get sandbox runtime: no runtime for "kata" is configured', "failed to get sandbox image"),
        "no-address": (
            'plugin type="aws-cni" failed (add): add cmd: failed to assign an IP address to container',
            'plugin type="calico" failed (add): connection is unauthorized',
        ),
        "pause-image": ('failed to get sandbox image "registry.k8s.io/pause:3": i/o timeout', 'failed to pull image "lab:4": i/o timeout'),
        "cgroups": ("mkdir /sys/fs/cgroup/kubepods.slice: no space left on device", "mkdir /var/lib/kubelet: no space left on device"),
        "cgroup-driver": (
            'expected cgroupsPath to be of format "slice:prefix:name" for systemd cgroups, got "/kubepods/burstable/pod0b4e" instead',
            "open /sys/fs/cgroup/kubepods.slice: no such file or directory",
        ),
        "no-processes": (
            "start failed: : fork/exec /usr/bin/containerd-shim-runc-v2: resource temporarily unavailable",
            "dial unix /run/flannel.sock: connect: resource temporarily unavailable",
        ),
        "no-disk": (
            "write /var/lib/containerd/io.containerd.runtime.v2.task/k8s.io/3f1c/config.json: no space left on device",
            "inotify_add_watch /etc/cni/net.d: no space left on device",
        ),
        "network": ("cni plugin not initialized", "cni plugin answered late"),
        "runtime-down": (
            'dial unix /run/containerd/containerd.sock: connect: connection refused',
            "dial tcp 10.0.0.1:443: connect: connection refused",
        ),
    },
    "scheduling.CLOUD_REFUSALS": {
        "quota-limit": ("your current vCPU limit of 64 allows for the instance bucket", "all allocatable vCPUs are in use"),
        "quota": ("GCE quota exceeded", "GCE out of resources"),
        "addresses": ("IP space exhausted", "ZONE_RESOURCE_POOL_EXHAUSTED"),
        "zone": ("capacity in the Availability Zone you requested (eu-1a)", "capacity in the Availability Zones that you requested"),
        "stock": ("InsufficientInstanceCapacity - no machine", "InsufficientFreeAddressesInSubnet - no address"),
        "refused": ("Service account deleted", "Internal error"),
    },
    "exits.CANNOT_START": {
        "cuda": (
            _CREATE + "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.8, please update your driver",
            _CREATE + "nvidia-container-cli: initialization error: nvml error: driver not loaded",
        ),
        "driver-mismatch": (_CREATE + "nvml error: driver/library version mismatch", _CREATE + "nvml error: driver not loaded"),
        "gpu-driver": (
            _CREATE + "nvidia-container-cli: initialization error: nvml error: driver not loaded",
            _CREATE + "nvidia runtime hook exited",
        ),
        "security-profile": (_CREATE + 'cannot load seccomp profile "/var/lib/kubelet/lab.json"', _CREATE + "security options are set"),
        "memory-limit": (
            _CREATE + "container init was OOM-killed (memory limit too low?)",
            _CREATE + "write memory.max: device or resource busy",
        ),
        "unknown-user": ("mount callback failed on /containerd-mount1: no users found", "mount callback failed: no such device"),
        "selinux": (
            'failed to generate spec: relabel "/var/lib/kubelet/pods/6f1e/volumes/kubernetes.io~nfs/home" with "system_u" failed',
            'failed to generate spec: label "home" failed',
        ),
        "sub-path": ('failed to prepare subPath for volumeMount "data"', 'failed to prepare volumeMount "data" of container "run"'),
        "no-command-file": (
            _CREATE + 'exec: "/app/run": stat /app/run: no such file or directory: unknown',
            _CREATE + 'error mounting "/host/a" to rootfs at "/a": no such file or directory: unknown',
        ),
        "not-executable": (
            _CREATE + 'exec: "/app/run": permission denied: unknown',
            _CREATE + 'error mounting "/host/a" to rootfs at "/a": permission denied: unknown',
        ),
        "directory": (
            _CREATE + 'exec: "/app": is a directory: unknown',
            _CREATE + 'error mounting "/host/a" to rootfs at "/a": is a directory: unknown',
        ),
        "format": (_CREATE + "exec /app/run: exec format error", _CREATE + "exec /app/run: input/output error"),
        "working-directory": (
            _CREATE + 'chdir to cwd ("/mnt/project") set in config.json failed: permission denied: unknown',
            _CREATE + 'exec: "/mnt/project": permission denied: unknown',
        ),
        "slow-runtime": (
            'failed to reserve container name "run_p_ns_uid-of-p_0": name "run_p_ns_uid-of-p_0" is reserved for "9d1c0a"',
            'failed to create container: id "9d1c0a" is not known',
        ),
        "user-namespaces": (
            _CREATE + "failed to set MOUNT_ATTR_IDMAP on /mnt/data: invalid argument",
            _CREATE + "failed to set up a user namespace",
        ),
        "named-user": (
            "container has runAsNonRoot and image has non-numeric user (jovyan), cannot verify user is non-root",
            "container has runAsNonRoot and image will run as root",
        ),
        "root": ("container has runAsNonRoot and image will run as root (pod: ...)", "container runs as user 0"),
        "no-command": ("failed to generate spec: no command specified", "failed to generate spec: no container specified"),
    },
    "exits.MEANINGS": {
        "126": ("126", "125"),
        "127": ("127", "128"),
        "130": ("130", "2"),
        "134": ("134", "6"),
        "132": ("132", "4"),
        "135": ("135", "7"),
        "136": ("136", "8"),
        "137": ("137", "9"),
        "139": ("139", "11"),
        "143": ("143", "15"),
        "159": ("159", "31"),
    },
    "mounts.MISSING": {
        "key": ("couldn't find key user in Secret compute-grid/token", "couldn't find volume user in pod compute-grid/p"),
        "object": (_MOUNT + 'configmap "settings" not found', _MOUNT + 'configmap "settings" is forbidden'),
    },
    "mounts.WHY_NOT_MOUNTED": {
        "no-client": (
            _MOUNT + "mount failed: exit status 32\nOutput: mount: /var/lib/kubelet/pods/a: bad option; for several filesystems (e.g. nfs, "
            "cifs) you might need a /sbin/mount.<type> helper program.",
            _MOUNT + "mount failed: exit status 32\nOutput: mount: bad option; see the manual of the helper program.",
        ),
        "no-folder": (
            _MOUNT + "mount failed: exit status 32\nmount.nfs4: mounting fs:/a failed, reason given by server: No such file or directory",
            _MOUNT + "mount failed: exit status 32\nmount.nfs4: mounting fs:/a failed, reason given by server: Permission denied",
        ),
        "secret-store": (
            _MOUNT + "rpc error: code = Unknown desc = failed to mount secrets store objects for pod p, err: permission denied",
            _MOUNT + "rpc error: code = Unknown desc = failed to mount: permission denied",
        ),
        "used-elsewhere": (
            _MOUNT + "rpc error: code = Internal desc = rbd image replicapool/csi-vol-2f0d is still being used",
            _MOUNT + "rpc error: code = Internal desc = rbd image replicapool/csi-vol-2f0d is used up",
        ),
        "node-is-full": (
            "exceeded the limit of maximum number of attached persistent disks (16) of instance node-1",
            "exceeded the limit of requests (16) of instance node-1",
        ),
        "node-disk": (
            _MOUNT + "mkdir /var/lib/kubelet/pods/6f1e/volumes/kubernetes.io~projected: read-only file system",
            _MOUNT + "mkdir /srv/nfs/home: read-only file system",
        ),
        "no-token": (_MOUNT + 'failed to fetch token: serviceaccounts "a" is forbidden', _MOUNT + "failed to read the token"),
        "not-attached-yet": (
            'attachment of disk "vol-1" failed, expected device to be attached but was attaching',
            'attachment of disk "vol-1" failed',
        ),
        "file-server-silent": (
            _MOUNT + "mount failed: exit status 32\nmount.nfs: Connection timed out",
            _MOUNT + "mount failed: exit status 32\nmount.ceph: Connection timed out",
        ),
        "file-server-refuses": (
            _MOUNT + "mount.nfs: access denied by server while mounting",
            _MOUNT + "mount.nfs: Connection timed out",
        ),
        "no-rights": (_MOUNT + "code = PermissionDenied desc = 403: x does not have list access", _MOUNT + "no access to the disk"),
        "no-driver": (
            _MOUNT + "driver name nfs.csi.k8s.io not found in the list of registered CSI drivers",
            _MOUNT + "driver name nfs.csi.k8s.io registered twice",
        ),
        "damaged": (
            _MOUNT + "'fsck' found errors on device /dev/sdb but could not correct them: fsck from util-linux 2.38.1",
            _MOUNT + "`fsck` error 8 on device /dev/sdb",
        ),
        "not-expanded": (
            'MountVolume.MountDevice failed while expanding volume for volume "pvc-1" : resize2fs: Permission denied',
            'MountVolume.MountDevice failed for volume "pvc-1" : it was expanded twice',
        ),
        "file-system": (
            _MOUNT + "mount: wrong fs type, bad option, bad superblock on /dev/sdb",
            _MOUNT + "mount: /dev/sdb already mounted or mount point busy",
        ),
        "storage-silent": (
            _MOUNT + "rpc error: code = Aborted desc = an operation with the given Volume ID 0001-0009 already exists",
            _MOUNT + "rpc error: code = Aborted desc = the Volume ID 0001-0009 already exists",
        ),
    },
    "mounts.ATTACHED": {
        "in-use": (_MULTI + "used by pod(s) a, b", _MULTI + "used by 2 pod(s) in different namespaces"),
        "in-use-elsewhere": (
            _MULTI + "used by 2 pod(s) in different namespaces",
            _MULTI + "used by pod(s) a and 2 pod(s) in different namespaces",
        ),
        "attached": (
            _MULTI + "exclusively attached to one node and can't be attached to another",
            'AttachVolume.Attach succeeded for volume "pvc-1"',
        ),
    },
    "probes.ANSWERS": {
        "http": ("Readiness probe failed: HTTP probe failed with statuscode: 503", "Readiness probe failed: status 503 in the log"),
        "grpc": (
            'Startup probe failed: service unhealthy (responded with "NOT_SERVING")',
            'Startup probe failed: timeout: failed to connect service "10.0.0.1:9000" within 1s',
        ),
    },
    "probes.SILENCES": {
        "timed-out": (
            'Liveness probe failed: Get "http://10.0.0.1:80/": context deadline exceeded',
            "Liveness probe failed: cat: can't open '/tmp/healthy': No such file or directory",
        ),
        "refused": (
            "Liveness probe failed: dial tcp 10.0.0.1:80: connect: connection refused",
            "Liveness probe failed: dial tcp 10.0.0.1:80: connect: connection reset by peer",
        ),
    },
    "disruptions.CAUSES": {
        "PreemptionByScheduler": ("PreemptionByScheduler", "PreemptionByKubelet"),
        "DeletionByTaintManager": ("DeletionByTaintManager", "DeletionByUser"),
        "EvictionByEvictionAPI": ("EvictionByEvictionAPI", "Evicted"),
        "DeletionByPodGC": ("DeletionByPodGC", "DeletionByUser"),
    },
    "disruptions.REJECTIONS": {
        "NodeAffinity": ("NodeAffinity", "UnexpectedAdmissionError"),
        "Preempting": ("Preempting", "Preemption"),
        "Shutdown": ("Shutdown", "NodeShutdown"),
        "Terminated": ("Terminated", "Terminating"),
        "NodeShutdown": ("NodeShutdown", "Shutdown"),
        "TopologyAffinityError": ("TopologyAffinityError", "NodeAffinity"),
        "SMTAlignmentError": ("SMTAlignmentError", "UnexpectedAdmissionError"),
        "AppArmor": ("AppArmor", "UnexpectedAdmissionError"),
        "SysctlForbidden": ("SysctlForbidden", "UnexpectedAdmissionError"),
    },
    "disruptions.EVICTED": {
        "spot": ("Evicted pod: SpotInterrupted", "Evicted pod: Underutilized"),
        "removed": ("Evicted pod: Underutilized", "The node was low on resource: memory."),
        "scaled-down": ("deleting pod for node scale down", "deleted pod for another node's scale down"),
    },
    "disruptions.KUBELET_CAUSES": {
        "shutdown": ("Terminated Pod was terminated in response to imminent node shutdown.", "Failed Pod was terminated by its owner."),
        "critical-pod": (
            "Preempting Pod was preempted by Kubelet to accommodate a critical pod.",
            "default-scheduler: preempting to accommodate a higher priority pod",
        ),
        "low": ("Evicted The node was low on resource: ephemeral-storage. ", "Evicted Pod was rejected: too low on quota"),
    },
    "disruptions.EVICTIONS": {
        "volume-limit": ('Usage of EmptyDir volume "home" exceeds the limit "10Gi". ', 'Usage of volume "home" is near the limit "10Gi". '),
        "disk-limit": (
            "Pod ephemeral local storage usage exceeds the total limit of containers 10Gi. ",
            "The node was low on resource: ephemeral-storage. Container run was using 5Gi, request is 1Gi. ",
        ),
        "pressure": ("The node had condition: [DiskPressure]. ", "The node had condition: [NetworkUnavailable]. "),
        "low": ("The node was low on resource: memory. ", "The node had condition: [MemoryPressure]. "),
    },
    **REFUSALS,
    **LOGS,
}  # fmt: skip
