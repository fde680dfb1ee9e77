"""Explains why the API server refused to create an object: a quota, a limit range, pod security or a webhook of the cluster; pure."""

from collections.abc import Callable

from grid.core.regexes import Match
from grid.core.translation import gettext as _
from grid.diagnosis import refusedamounts as amounts
from grid.diagnosis import refusedhooks as hooks
from grid.diagnosis.refusalwords import ASK_ADMIN, RefusalReason, quoted
from grid.diagnosis.rules import RuleTable


def explain_refusal(message: str) -> RefusalReason | None:
    """Explain the API server's message; None when it is of no known form."""
    rule = REFUSALS.find(message)
    return rule[1](rule[2]) if rule else None


def _namespace_ends(match: Match) -> RefusalReason:
    return RefusalReason("namespace", _("The namespace {name} is being deleted.", name=match[1]), ASK_ADMIN)


def _pod_security(match: Match) -> RefusalReason:
    sentence = _(
        "Pod security of the namespace ({level}) forbids it: {violations}", level=match[1], violations=quoted(match[2])
    )
    return RefusalReason("pod_security", sentence, ASK_ADMIN)


def _rights(match: Match) -> RefusalReason:
    where = _("in the cluster") if match[3] else _("in the namespace")
    sentence = _("Compute Grid may not {verb} {resource} {where}.", verb=match[1], resource=match[2], where=where)
    return RefusalReason("rights", sentence, _("Ask an admin of the cluster to apply deploy/access.yaml again."))


REFUSALS = RuleTable[Callable[[Match], RefusalReason]](
    ("quota", r"exceeded quota: ([^,]+), requested: (.+?), used: (.+?), limited: (.+)", amounts.quota_exceeded),
    ("must-specify", r"failed quota: ([^:]+): must specify (.+)", amounts.must_specify),
    ("pod-security", r'violates PodSecurity "([^"]+)": (.+)', _pod_security),
    ("webhook-down", r'(?s)failed calling webhook "([^"]+)"(?:: (.*))?', hooks.webhook_down),
    ("webhook", r'(?s)admission webhook "([^"]+)" denied the request:? ?(.*)', hooks.webhook_denied),
    ("no-dry-run", r'admission webhook "([^"]+)" does not support dry run', hooks.no_dry_run),
    ("policy-broken",
     r"(?s)(?:\bp|\bValidatingAdmissionP)olicy '([^']+)'(?: with binding '[^']+')? denied request: (?:failed to configure \w+: (.+)|expression '.*' resulted in error: (.+))",
     hooks.policy_broken),
    ("policy", r"(?s)ValidatingAdmissionPolicy '([^']+)'(?: with binding '[^']+')? denied request: (.+)", hooks.policy_denied),
    ("mutating-policy",
     r"""(?s)\bpolicy ['"]([^'"]+)['"](?: with binding ['"][^'"]+['"])? denied request: (.+)""", hooks.change_failed),
    ("image-policy",
     r"(?s)image policy webh?ook backend denied one or more images: (.+)|one or more images rejected by webhook backend",
     hooks.image_denied),
    ("image-policy-down",
     r'(?s)is forbidden: (?:Post "?https?://[^\s"]+"?: |[Ee]rror contacting webhook: )(.+)', hooks.image_policy_down),
    ("always-pull", r"is forbidden: spec\.\S+\.imagePullPolicy: Unsupported value", hooks.not_always_pulled),
    ("quota-not-counted", r"status unknown for quota: ([^,]+), resources: ", amounts.quota_not_counted),
    ("quota-busy",
     r"resource quota evaluation timed out|Operation cannot be fulfilled on resourcequotas", amounts.quota_busy),
    ("no-quota", r"insufficient quota to (?:consume|match these scopes): (.+)", amounts.no_quota),
    ("limit-range",
     r"((?:\S+ \S+ usage|\S+ max limit to request ratio) per (?:Container|Pod|PersistentVolumeClaim) is .*)", amounts.limit_range),
    ("namespace-ends", r"unable to create new content in namespace (\S+) because it is being terminated", _namespace_ends),
    ("rights", r'\bUser "[^"]*" cannot (\w+) resource "([^"]+)"(?: in API group "[^"]*")?( at the cluster scope)?', _rights),
)  # fmt: skip
