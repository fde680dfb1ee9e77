"""What the cluster's version means for us: APIs that we use and it lacks or deprecates, and the skew of our client; pure."""

from collections.abc import Mapping

import msgspec

from grid.core.regexes import Expression
from grid.core.translation import gettext as _
from grid.platformhealth.facts import Severity

_GUIDE = "https://kubernetes.io/docs/reference/using-api/deprecation-guide/"
_JOBS = "https://github.com/kubernetes/kubernetes/blob/master/CHANGELOG/CHANGELOG-1.2.md#other-notable-improvements"
_SKEW = "https://kubernetes.io/releases/version-skew-policy/#kubectl"
_SIDECARS = "https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/"
_VERSION = Expression(r"v?(\d{1,4})\.(\d{1,4})(?:\.|\+|-|$)")
MOST_SKEW = 1  # minor versions, the rule for kubectl
SIDECARS_SINCE = 29


class UsedApi(msgspec.Struct, frozen=True):
    """Resources of one version of a group that we use. `since` and `deprecated` are minor versions of Kubernetes 1; `without` is what
    does not work where the server has none, and `is_optional` whether that is all."""

    group_version: str
    resources: tuple[str, ...]
    since: int
    without: str
    source: str
    is_optional: bool = False
    deprecated: int | None = None
    instead: str = ""


USED = (
    UsedApi(
        "v1",
        ("pods", "nodes", "events", "configmaps", "secrets", "services", "persistentvolumeclaims", "namespaces"),
        0,
        _("Nothing works."),
        "https://kubernetes.io/docs/reference/kubernetes-api/",
    ),
    UsedApi(
        "v1",
        ("endpoints",),
        0,
        _("Where the API server is, is read from EndpointSlices alone."),
        "https://kubernetes.io/blog/2025/04/24/endpoints-deprecation/",
        is_optional=True,
        deprecated=33,
        instead=_("It is only read where there is no EndpointSlice."),
    ),
    UsedApi("apps/v1", ("deployments", "replicasets"), 9, _("On-demand clusters cannot be launched."), _GUIDE),
    UsedApi("batch/v1", ("jobs",), 2, _("Images of environments cannot be built."), _JOBS, is_optional=True),
    UsedApi("autoscaling/v2", ("horizontalpodautoscalers",), 23, _("On-demand clusters do not grow."), _GUIDE),
    UsedApi("policy/v1", ("poddisruptionbudgets",), 21, _("Heads of clusters are not protected from drains."), _GUIDE),
    UsedApi("networking.k8s.io/v1", ("networkpolicies",), 8, _("Executions are not kept apart."), _GUIDE),
    UsedApi(
        "networking.k8s.io/v1", ("ingresses",), 19, _("GRID_INGRESS_CLASS cannot be used."), _GUIDE, is_optional=True
    ),
    UsedApi("coordination.k8s.io/v1", ("leases",), 14, _("No controller can lead."), _GUIDE),
    UsedApi(
        "discovery.k8s.io/v1", ("endpointslices",), 21, _("Where the API server is, is read from Endpoints."), _GUIDE
    ),
    UsedApi("storage.k8s.io/v1", ("storageclasses",), 6, _("Waits for volumes are not explained."), _GUIDE),
    UsedApi("scheduling.k8s.io/v1", ("priorityclasses",), 14, _("Nodes cannot be kept warm."), _GUIDE),
    UsedApi(
        "metrics.k8s.io/v1beta1",
        ("nodes", "pods"),
        8,
        _("Usage is not shown, and clusters do not grow. Install metrics-server."),
        "https://kubernetes.io/docs/tasks/debug/debug-cluster/resource-metrics-pipeline/",
        is_optional=True,
    ),
)


class VersionLine(msgspec.Struct, frozen=True):
    """One thing whose version matters. `source` is where the rule is written."""

    subject: str
    severity: Severity
    sentence: str
    source: str = ""


def minor_of(version: str) -> int | None:
    """Return the minor version of Kubernetes 1, such as 36 of "v1.36.2+k3s1"; None of anything else."""
    numbers = _VERSION.match(version)
    return int(numbers[2]) if numbers and numbers[1] == "1" else None


def version_lines(server: str, client: str, served: Mapping[str, frozenset[str] | None]) -> tuple[VersionLine, ...]:
    """Compare the server's version and our client's, and what we use with what is served: the resources by group and version, None
    where the server has no such version. A version that is missing in `served` could not be asked for."""
    minor = minor_of(server)
    apis = (_api(used, minor, served) for used in USED)
    return (_cluster(server, minor), *_skew(minor, client), *_sidecars(minor), *apis)


def _cluster(server: str, minor: int | None) -> VersionLine:
    if minor:
        return VersionLine(_("Cluster"), "ok", _("Kubernetes {server}.", server=server))
    reason = _("It calls itself {server}.", server=server) if server else _("It did not answer at /version.")
    return VersionLine(_("Cluster"), "wait", _("Version not known. {reason}", reason=reason))


def _skew(minor: int | None, client: str) -> tuple[VersionLine, ...]:
    """The Python client's major version is the minor version of Kubernetes that it is generated from."""
    major = client.partition(".")[0]
    if minor is None or not (major.isascii() and major.isdigit()):
        return ()
    subject, skew = _("Kubernetes client"), abs(int(major) - minor)
    if skew <= MOST_SKEW:
        words = _("Version {client}, generated from Kubernetes 1.{major}.", client=client, major=major)
        return (VersionLine(subject, "ok", words, _SKEW),)
    words = _(
        "Version {client} is generated from Kubernetes 1.{major}, {skew} minor versions from the cluster; kubectl’s rule is one. "
        "Only credentials are read with it. If logging in fails, install a version of Compute Grid with a closer one."
    ).format(client=client, major=major, skew=skew)
    return (VersionLine(subject, "neutral", words, _SKEW),)


def _sidecars(minor: int | None) -> tuple[VersionLine, ...]:
    if minor is None or minor >= SIDECARS_SINCE:
        return ()
    words = _("Kubernetes before 1.{sidecars_since} has none: the executor of files in Git is an ordinary container.")
    words = words.format(sidecars_since=SIDECARS_SINCE)
    return (VersionLine(_("Native sidecars"), "neutral", words, _SIDECARS),)


def _api(used: UsedApi, minor: int | None, served: Mapping[str, frozenset[str] | None]) -> VersionLine:
    subject = f"{used.group_version} {', '.join(used.resources)}"
    if used.group_version not in served:
        return VersionLine(subject, "wait", _("Not known: the API server did not say whether it has it."), used.source)
    names = served[used.group_version] or frozenset()
    if lacking := ", ".join(name for name in used.resources if name not in names):
        severity: Severity = "neutral" if used.is_optional else "problem"
        since = _(" Kubernetes has it since 1.{since}.", since=used.since) if used.since else ""
        words = _("Not served: {lacking}. {without}{since}", lacking=lacking, without=used.without, since=since)
        return VersionLine(subject, severity, words, used.source)
    if used.deprecated is not None and minor is not None and minor >= used.deprecated:
        words = _("Served, and deprecated since 1.{deprecated}. {instead}")
        words = words.format(deprecated=used.deprecated, instead=used.instead).strip()
        return VersionLine(subject, "neutral", words, used.source)
    return VersionLine(subject, "ok", _("Served."), used.source)
