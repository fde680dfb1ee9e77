"""One light and one sentence for each service that the platform depends on; pure."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from grid.core.regexes import Expression
from grid.core.translation import gettext as _
from grid.core.translation import ngettext
from grid.core.wording import about, as_sentence, listed_up_to, one_line, plural
from grid.platformhealth.facts import (
    AutoscalerReport,
    Heartbeat,
    Light,
    LogShipping,
    ServerAnswers,
    Severity,
    Unread,
    WarningEvent,
    Workload,
)

SLOW_REQUEST_SECONDS = 2.0
SLOW_DATABASE_SECONDS = 1.0
SILENT_SECONDS = 25.0  # a leader renews its Lease every two seconds
UNREPORTED_SECONDS = 180.0  # the autoscaler reports after each of its loops, usually every ten seconds
_SHOWN = 3
_RECENT_LOSS = timedelta(minutes=15)
_DNS_LABELS = ("kube-dns", "coredns")
# What these say is wrong with the image's name or the credentials; the registry has answered.
_ANSWERED = Expression(r"(?i)not found|manifest unknown|denied|unauthorized|does not exist|invalid reference|no match")
_IMAGE = Expression(r"image \"([^\"]+)\"")
# The volume's source is an object that somebody forgot, not the storage.
_OBJECT_MISSING = Expression(r"(?i)(secret|configmap) \"")


def api_server(answers: ServerAnswers) -> Light:
    spent = f"{answers.slowest_seconds * 1000:,.0f} ms"
    if answers.errors:
        errors = plural(len(answers.errors), "request", "requests")
        return _light(
            "api-server",
            "problem",
            _(
                "{failed} of {requests} failed. {error}",
                failed=errors,
                requests=answers.requests,
                error=as_sentence(answers.errors[0]),
            ),
        )
    if answers.checks:
        names = listed_up_to(_SHOWN, answers.checks)
        return _light(
            "api-server", "problem", _("Its own checks fail: {names}. See its log on the control plane.", names=names)
        )
    if answers.slowest_seconds >= SLOW_REQUEST_SECONDS:
        words = _(
            "The slowest of {requests} requests took {spent}. See its CPU, and that of etcd.",
            requests=answers.requests,
            spent=spent,
        )
        return _light("api-server", "problem", words)
    own = "" if answers.checks is not None else _(" Its own checks (/readyz) cannot be read.")
    return _light(
        "api-server",
        "ok",
        _(
            "The slowest of {requests} requests took {spent}, none failed.{own}",
            requests=answers.requests,
            spent=spent,
            own=own,
        ),
    )


def dns(workloads: Sequence[Workload] | Unread, lookup_error: str | None) -> Light:
    """`lookup_error` is what our own lookup said, "" when it worked; None when we run outside the cluster."""
    if lookup_error:
        return _light(
            "dns",
            "problem",
            _(
                "A lookup of kubernetes.default.svc fails: {lookup_error}. See the pods of the DNS.",
                lookup_error=lookup_error,
            ),
        )
    if isinstance(workloads, Unread):
        return _unknown("dns", workloads)
    servers = [one for one in workloads if one.labels.get("k8s-app") in _DNS_LABELS or one.name in _DNS_LABELS]
    if not servers:
        if lookup_error is None:
            return _light("dns", "wait", _("Not known: there is no Deployment of CoreDNS or kube-dns in kube-system."))
        return _light("dns", "ok", _("Our own lookup works."))
    return _of_workloads("dns", servers, _("Pods find no Service by its name."))


def lease(key: str, found: Heartbeat | Unread | None) -> Light:
    if isinstance(found, Unread):
        return _unknown(key, found)
    if found is None:
        return _light(key, "wait", _("Not known: it has no Lease in kube-system. A managed control plane may hide it."))
    if found.silent_seconds is None:
        return _light(key, "wait", _("Not known yet: its Lease was read once, and must be seen to change."))
    if found.silent_seconds >= SILENT_SECONDS:
        silent = about(found.silent_seconds)
        return _light(
            key,
            "problem",
            _(
                "Its Lease was not renewed for {silent}. {without} See its pod in kube-system.",
                silent=silent,
                without=_WITHOUT[key],
            ),
        )
    return _light(
        key,
        "ok",
        _("Its Lease is renewed by {holder}.", holder=found.holder) if found.holder else _("Its Lease is renewed."),
    )


def autoscaler(found: AutoscalerReport | Unread | None) -> Light:
    key = "autoscaler"
    if isinstance(found, Unread):
        return _unknown(key, found)
    if found is None:
        return _light(key, "neutral", _("None reports here: node pools keep their size."))
    silent = found.heartbeat.silent_seconds
    if silent is not None and silent >= UNREPORTED_SECONDS:
        return _light(
            key,
            "problem",
            _("It has not reported for {silent}: no nodes are started or removed.", silent=about(silent)),
        )
    if not found.health:
        return _light(key, "wait", _("Not known: its ConfigMap cluster-autoscaler-status cannot be parsed."))
    if found.health != "Healthy":
        return _light(
            key,
            "problem",
            _("It reports {health}: too many nodes are not ready, so it starts none.", health=found.health),
        )
    return _light(key, "ok", _("It reports that the cluster is healthy."))


def metrics(error: str | Unread | None) -> Light:
    """`error` is "" when metrics.k8s.io answers, None when the cluster has none."""
    if isinstance(error, Unread):
        return _unknown("metrics", error)
    if error is None:
        return _light(
            "metrics", "neutral", _("This cluster serves no metrics.k8s.io: usage is not shown, clusters do not grow.")
        )
    if error:
        return _light("metrics", "problem", _("metrics.k8s.io does not answer. {error}", error=as_sentence(error)))
    return _light("metrics", "ok", _("metrics.k8s.io answers."))


def registry(troubles: Sequence[WarningEvent]) -> Light:
    """A pull that the registry has refused says nothing against the registry."""
    hosts: dict[str, set[str]] = {}
    for one in troubles:
        found = _IMAGE.search(one.message)
        if one.reason == "Failed" and found and "pull" in one.message and not _ANSWERED.search(one.message):
            hosts.setdefault(registry_host(found[1]), set()).add(one.about)
    if not hosts:
        return _light("registry", "ok", _("No image pull failed for want of a registry in the last 15 minutes."))
    named = listed_up_to(_SHOWN, [f"{host} ({plural(len(hosts[host]), 'pod', 'pods')})" for host in sorted(hosts)])
    return _light(
        "registry", "problem", _("Images cannot be pulled from {named}. See whether the nodes reach it.", named=named)
    )


def registry_host(image: str) -> str:
    """Return the host of an image's name, by the rule of the OCI's reference grammar as Docker reads it."""
    first, slash, _ = image.partition("/")
    return first if slash and ("." in first or ":" in first or first == "localhost") else "docker.io"


def storage(troubles: Sequence[WarningEvent], pending_claims: frozenset[str]) -> Light:
    """`pending_claims` are the names of claims without a volume; one that waits for its pod is no trouble."""
    claims = {one.about for one in troubles if one.reason == "ProvisioningFailed" and one.about in pending_claims}
    mounts = {
        one.about
        for one in troubles
        if one.reason in ("FailedAttachVolume", "FailedMount") and not _OBJECT_MISSING.search(one.message)
    }
    if not claims and not mounts:
        return _light(
            "storage", "ok", _("No volume failed to be provisioned, attached or mounted in the last 15 minutes.")
        )
    parts = []
    if claims:
        parts.append(_("No volume can be provisioned for {shown}.", shown=listed_up_to(_SHOWN, sorted(claims))))
    if mounts:
        parts.append(
            _("Volumes cannot be attached or mounted for {shown}.", shown=listed_up_to(_SHOWN, sorted(mounts)))
        )
    return _light(
        "storage", "problem", _("{parts} See the events of these, and the CSI driver's pods.", parts=" ".join(parts))
    )


def ingress(is_used: bool, workloads: Sequence[Workload] | Unread) -> Light:
    if not is_used:
        return _light("ingress", "neutral", _("Not used: requests come through our proxies."))
    if isinstance(workloads, Unread):
        return _unknown("ingress", workloads)
    if not workloads:
        return _light(
            "ingress", "wait", _("Not known: its namespace (GRID_INGRESS_NAMESPACE) has no Deployment or DaemonSet.")
        )
    return _of_workloads("ingress", workloads, _("People cannot open their workspaces."))


def proxies(workloads: Sequence[Workload] | Unread, reach_error: str | None) -> Light:
    """`reach_error` is what connecting to the proxy said, "" when it worked; None when it runs as a Deployment, and was not tried."""
    if reach_error:
        return _light(
            "proxies",
            "problem",
            _("The proxy cannot be reached: {reach_error}. Start it: manage.py proxy.", reach_error=reach_error),
        )
    if reach_error == "":
        return _light("proxies", "ok", _("The proxy takes connections."))
    if isinstance(workloads, Unread):
        return _unknown("proxies", workloads)
    ours = [one for one in workloads if one.name == "proxy"]
    if not ours:
        return _light("proxies", "wait", _("Not known: there is no Deployment proxy in compute-grid-system."))
    return _of_workloads("proxies", ours, _("People cannot open their workspaces."))


def database(seconds: float) -> Light:
    took = _("It answered the controller within {seconds:,.0f} ms.", seconds=seconds * 1000)
    if seconds >= SLOW_DATABASE_SECONDS:
        return _light(
            "database", "problem", _("{took} Pages and launches wait for it. See its load and its disk.", took=took)
        )
    return _light("database", "ok", took)


def log_receiver(found: LogShipping | None, now: datetime) -> Light:
    """Of the receiver of executions' logs; None where none is set."""
    if found is None:
        return _light("log-receiver", "neutral", _("Not set: of executions' logs the end is kept here."))
    receiver = found.receiver
    waiting = ngettext("{count:,} line waits", "{count:,} lines wait", found.waiting_lines)
    lost = ngettext(
        "{count:,} line was lost since this controller leads.",
        "{count:,} lines were lost since this controller leads.",
        found.lost,
    )
    if found.why:
        since = (
            _("since {failing_since:%H:%M} UTC", failing_since=found.failing_since) if found.failing_since else _("now")
        )
        words = _(
            "{receiver} takes no lines {since}: {why}. {waiting}. {lost}",
            receiver=receiver,
            since=since,
            why=found.why,
            waiting=waiting,
            lost=lost if found.lost else "",
        )
        return _light("log-receiver", "problem", words)
    if found.lost_at is not None and now - found.lost_at < _RECENT_LOSS:
        return _light(
            "log-receiver",
            "problem",
            _("{receiver} takes lines, but {lost} See the controller's log.", receiver=receiver, lost=lost),
        )
    return _light(
        "log-receiver",
        "ok",
        _(
            "{receiver} takes lines; {waiting}. {lost}",
            receiver=receiver,
            waiting=waiting,
            lost=lost if found.lost else "",
        ),
    )


NAMES = {
    "api-server": _("API server"),
    "dns": "DNS",
    "scheduler": _("Scheduler"),
    "controller-manager": _("Controller manager"),
    "autoscaler": _("Autoscaler"),
    "metrics": _("Metrics"),
    "registry": _("Registry"),
    "storage": _("Storage"),
    "ingress": "Ingress",
    "proxies": _("Proxies"),
    "log-receiver": _("Log receiver"),
    "database": _("Database"),
}
_WITHOUT = {
    "scheduler": _("New pods get no node."),
    "controller-manager": _("Deployments, autoscalers and clean-up stand still."),
}


def _of_workloads(key: str, workloads: Sequence[Workload], without: str) -> Light:
    ready, wanted = sum(one.ready for one in workloads), sum(one.wanted for one in workloads)
    names = listed_up_to(_SHOWN, [one.name for one in workloads])
    if ready == 0:
        return _light(key, "problem", _("No pod of {names} is ready. {without}", names=names, without=without))
    if ready < wanted:
        return _light(
            key,
            "problem",
            _("Only {ready} of {wanted} pods of {names} are ready.", ready=ready, wanted=wanted, names=names),
        )
    return _light(
        key,
        "ok",
        ngettext("{count:,} pod is ready ({names}).", "{count:,} pods are ready ({names}).", ready, names=names),
    )


def _unknown(key: str, unread: Unread) -> Light:
    return _light(key, "wait", _("Not known: {why}", why=unread.why))


def _light(key: str, severity: Severity, sentence: str) -> Light:
    return Light(key, NAMES[key], severity, one_line(sentence))
