"""One light and one sentence for each service that the platform depends on; pure."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import wraps
from typing import ParamSpec

from grid.core.regexes import Expression
from grid.core.translation import gettext as _, ngettext
from grid.core.wording import about, as_sentence, listed_up_to, one_line, plural
from grid.diagnosis.images import failure_key
from grid.platformhealth import facts

SLOW_REQUEST_SECONDS = 2.0
SLOW_DATABASE_SECONDS = 1.0
SILENT_SECONDS = 25.0  # a leader renews its Lease every two seconds
UNREPORTED_SECONDS = 180.0  # the autoscaler reports after each of its loops, usually every ten seconds
_SHOWN = 3
_RECENT_LOSS = timedelta(minutes=15)
_DNS_LABELS = ("kube-dns", "coredns")
# What is wrong with the image's name or the credentials, which the registry has answered, or with the node.
_NOT_OF_REGISTRY = frozenset({"platform", "access", "never-pulled", "signature", "invalid-name", "no-such-image", "disk-full", "pull-qps",
                              "old-format", "vulnerable"})  # fmt: skip
# The volume's source is an object that somebody forgot, not the storage.
_OBJECT_MISSING = Expression(r"(?i)(secret|configmap) \"")

P = ParamSpec("P")
Verdict = tuple[facts.Severity, str]


def _light(key: str, name: str) -> Callable[[Callable[P, Verdict]], Callable[P, facts.Light]]:
    """Make of a rule, which returns severity and sentence, one that returns the service's light."""

    def lit(judge: Callable[P, Verdict]) -> Callable[P, facts.Light]:
        @wraps(judge)
        def light(*args: P.args, **kwargs: P.kwargs) -> facts.Light:
            severity, sentence = judge(*args, **kwargs)
            return facts.Light(key, name, severity, one_line(sentence))

        return light

    return lit


@_light("api-server", _("API server"))
def api_server(answers: facts.ServerAnswers) -> Verdict:
    requests, spent = answers.requests, f"{answers.slowest_seconds * 1000:,.0f} ms"
    if answers.errors:
        failed, error = plural(len(answers.errors), "request", "requests"), as_sentence(answers.errors[0])
        return "problem", _("{failed} of {requests} failed. {error}", failed=failed, requests=requests, error=error)
    if answers.checks:
        names = listed_up_to(_SHOWN, answers.checks)
        return "problem", _("Its own checks fail: {names}. See its log on the control plane.", names=names)
    if answers.slowest_seconds >= SLOW_REQUEST_SECONDS:
        words = _("The slowest of {requests} requests took {spent}. See its CPU, and that of etcd.")
        return "problem", words.format(requests=requests, spent=spent)
    own = "" if answers.checks is not None else _(" Its own checks (/readyz) cannot be read.")
    words = _("The slowest of {requests} requests took {spent}, none failed.{own}")
    return "ok", words.format(requests=requests, spent=spent, own=own)


@_light("dns", "DNS")
def dns(workloads: Sequence[facts.Workload] | facts.Unread, lookup_error: str | None) -> Verdict:
    """`lookup_error` is what our own lookup said, "" when it worked; None when we run outside the cluster."""
    if lookup_error:
        words = _("A lookup of kubernetes.default.svc fails: {lookup_error}. See the pods of the DNS.")
        return "problem", words.format(lookup_error=lookup_error)
    if isinstance(workloads, facts.Unread):
        return _unknown(workloads)
    servers = [each for each in workloads if each.labels.get("k8s-app") in _DNS_LABELS or each.name in _DNS_LABELS]
    if servers:
        return _of_workloads(servers, _("Pods find no Service by its name."))
    if lookup_error is None:
        return "wait", _("Not known: there is no Deployment of CoreDNS or kube-dns in kube-system.")
    return "ok", _("Our own lookup works.")


@_light("scheduler", _("Scheduler"))
def scheduler(lease: facts.Heartbeat | facts.Unread | None) -> Verdict:
    return _of_lease(lease, _("New pods get no node."))


@_light("controller-manager", _("Controller manager"))
def controller_manager(lease: facts.Heartbeat | facts.Unread | None) -> Verdict:
    return _of_lease(lease, _("Deployments, autoscalers and clean-up stand still."))


@_light("autoscaler", _("Autoscaler"))
def autoscaler(report: facts.AutoscalerReport | facts.Unread | None) -> Verdict:
    if isinstance(report, facts.Unread):
        return _unknown(report)
    if report is None:
        return "neutral", _("None reports here: node pools keep their size.")
    silent = report.heartbeat.silent_seconds
    if silent is not None and silent >= UNREPORTED_SECONDS:
        return "problem", _("It has not reported for {silent}: no nodes are started or removed.", silent=about(silent))
    if not report.health:
        return "wait", _("Not known: its ConfigMap cluster-autoscaler-status cannot be parsed.")
    if report.health != "Healthy":
        words = _("It reports {health}: too many nodes are not ready, so it starts none.")
        return "problem", words.format(health=report.health)
    return "ok", _("It reports that the cluster is healthy.")


@_light("metrics", _("Metrics"))
def metrics(error: str | facts.Unread | None) -> Verdict:
    """`error` is "" when metrics.k8s.io answers, None when the cluster has none."""
    if isinstance(error, facts.Unread):
        return _unknown(error)
    if error is None:
        return "neutral", _("This cluster serves no metrics.k8s.io: usage is not shown, clusters do not grow.")
    if error:
        return "problem", _("metrics.k8s.io does not answer. {error}", error=as_sentence(error))
    return "ok", _("metrics.k8s.io answers.")


@_light("registry", _("Registry"))
def registry(pulls: Sequence[facts.FailedPull]) -> Verdict:
    """One person's image that never was pulled is its owner's matter, for any host can be made up; so is what the registry refused."""
    hosts: dict[str, list[facts.FailedPull]] = {}
    for pull in pulls:
        if failure_key(pull.message, pull.image) not in _NOT_OF_REGISTRY:
            hosts.setdefault(registry_host(pull.image), []).append(pull)
    bad = {host: failing for host, failing in hosts.items() if _is_of_many(failing)}
    if not bad and not hosts:
        return "ok", _("No image pull fails for want of a registry.")
    if not bad:
        images = listed_up_to(_SHOWN, sorted({pull.image for failing in hosts.values() for pull in failing}))
        words = _("No pull fails but that of {images}, which nobody has pulled before: see its execution.")
        return "ok", words.format(images=images)
    counted = {host: len({pull.pod for pull in failing}) for host, failing in bad.items()}
    named = listed_up_to(_SHOWN, [f"{host} ({plural(counted[host], 'pod', 'pods')})" for host in sorted(bad)])
    return "problem", _("Images cannot be pulled from {named}. See whether the nodes reach it.", named=named)


def _is_of_many(failing: Sequence[facts.FailedPull]) -> bool:
    """Return True when several images or people fail, or an image that was pulled before. The name of one person's host proves
    nothing by itself when it cannot be resolved, whatever number of images it is said to have."""
    if len({pull.person for pull in failing}) > 1 or any(pull.was_pulled for pull in failing):
        return True
    reached = {pull.image for pull in failing if failure_key(pull.message, pull.image) != "host-name"}
    return len(reached) > 1


def registry_host(image: str) -> str:
    """Return the host of an image's name, by the rule of the OCI's reference grammar as Docker reads it."""
    first, slash, _ = image.partition("/")
    return first if slash and ("." in first or ":" in first or first == "localhost") else "docker.io"


@_light("storage", _("Storage"))
def storage(troubles: Sequence[facts.WarningEvent], pending_claims: frozenset[str]) -> Verdict:
    """`pending_claims` are the names of claims without a volume; one that waits for its pod is no trouble."""
    claims = {event.about for event in troubles if event.reason == "ProvisioningFailed"} & pending_claims
    mounts = {
        event.about
        for event in troubles
        if event.reason in ("FailedAttachVolume", "FailedMount") and not _OBJECT_MISSING.search(event.message)
    }
    if not claims and not mounts:
        return "ok", _("No volume failed to be provisioned, attached or mounted in the last 15 minutes.")
    parts = []
    if claims:
        parts.append(_("No volume can be provisioned for {shown}.", shown=listed_up_to(_SHOWN, sorted(claims))))
    if mounts:
        shown = listed_up_to(_SHOWN, sorted(mounts))
        parts.append(_("Volumes cannot be attached or mounted for {shown}.", shown=shown))
    return "problem", _("{parts} See the events of these, and the CSI driver's pods.", parts=" ".join(parts))


@_light("ingress", "Ingress")
def ingress(is_used: bool, workloads: Sequence[facts.Workload] | facts.Unread) -> Verdict:
    if not is_used:
        return "neutral", _("Not used: requests come through our proxies.")
    if isinstance(workloads, facts.Unread):
        return _unknown(workloads)
    if not workloads:
        return "wait", _("Not known: its namespace (GRID_INGRESS_NAMESPACE) has no Deployment or DaemonSet.")
    return _of_workloads(workloads, _("People cannot open their workspaces."))


@_light("proxies", _("Proxies"))
def proxies(workloads: Sequence[facts.Workload] | facts.Unread, reach_error: str | None) -> Verdict:
    """`reach_error` is what connecting to the proxy said, "" when it worked; None when it runs as a Deployment, and was not tried."""
    if reach_error:
        words = _("The proxy cannot be reached: {reach_error}. Start it: manage.py proxy.", reach_error=reach_error)
        return "problem", words
    if reach_error == "":
        return "ok", _("The proxy takes connections.")
    if isinstance(workloads, facts.Unread):
        return _unknown(workloads)
    ours = [workload for workload in workloads if workload.name == "proxy"]
    if not ours:
        return "wait", _("Not known: there is no Deployment proxy in compute-grid-system.")
    return _of_workloads(ours, _("People cannot open their workspaces."))


@_light("database", _("Database"))
def database(seconds: float) -> Verdict:
    took = _("It answered the controller within {seconds:,.0f} ms.", seconds=seconds * 1000)
    if seconds >= SLOW_DATABASE_SECONDS:
        return "problem", _("{took} Pages and launches wait for it. See its load and its disk.", took=took)
    return "ok", took


@_light("log-receiver", _("Log receiver"))
def log_receiver(shipping: facts.LogShipping | None, now: datetime) -> Verdict:
    """Of the receiver of executions' logs; None where none is set."""
    if shipping is None:
        return "neutral", _("Not set: of executions' logs the end is kept here.")
    receiver = shipping.receiver
    waiting = ngettext("{count:,} line waits", "{count:,} lines wait", shipping.waiting_lines)
    lost = ngettext(
        "{count:,} line was lost since this controller leads.",
        "{count:,} lines were lost since this controller leads.",
        shipping.lost,
    )
    any_lost = lost if shipping.lost else ""
    if shipping.why:
        began = shipping.failing_since
        since = _("since {failing_since:%H:%M} UTC", failing_since=began) if began else _("now")
        words = _("{receiver} takes no lines {since}: {why}. {waiting}. {lost}")
        words = words.format(receiver=receiver, since=since, why=shipping.why, waiting=waiting, lost=any_lost)
        return "problem", words
    if shipping.lost_at is not None and now - shipping.lost_at < _RECENT_LOSS:
        words = _("{receiver} takes lines, but {lost} See the controller's log.", receiver=receiver, lost=lost)
        return "problem", words
    return "ok", _("{receiver} takes lines; {waiting}. {lost}", receiver=receiver, waiting=waiting, lost=any_lost)


def _of_lease(lease: facts.Heartbeat | facts.Unread | None, without: str) -> Verdict:
    if isinstance(lease, facts.Unread):
        return _unknown(lease)
    if lease is None:
        return "wait", _("Not known: it has no Lease in kube-system. A managed control plane may hide it.")
    if lease.silent_seconds is None:
        return "wait", _("Not known yet: its Lease was read once, and must be seen to change.")
    if lease.silent_seconds >= SILENT_SECONDS:
        words = _("Its Lease was not renewed for {silent}. {without} See its pod in kube-system.")
        return "problem", words.format(silent=about(lease.silent_seconds), without=without)
    words = _("Its Lease is renewed by {holder}.", holder=lease.holder) if lease.holder else _("Its Lease is renewed.")
    return "ok", words


def _of_workloads(workloads: Sequence[facts.Workload], without: str) -> Verdict:
    ready, wanted = sum(workload.ready for workload in workloads), sum(workload.wanted for workload in workloads)
    names = listed_up_to(_SHOWN, [workload.name for workload in workloads])
    if ready == 0:
        return "problem", _("No pod of {names} is ready. {without}", names=names, without=without)
    if ready < wanted:
        words = _("Only {ready} of {wanted} pods of {names} are ready.", ready=ready, wanted=wanted, names=names)
        return "problem", words
    return "ok", ngettext(
        "{count:,} pod is ready ({names}).", "{count:,} pods are ready ({names}).", ready, names=names
    )


def _unknown(unread: facts.Unread) -> Verdict:
    return "wait", _("Not known: {why}", why=unread.why)
