"""Explains why the API server refused to create an object: the table of all that is known of its messages; pure.

What is not for good is waited for: what was missing may appear, and who did not answer may answer. The rest needs somebody's change.
"""

from collections.abc import Callable

from grid.core.regexes import Match
from grid.diagnosis import refusedamounts as amounts
from grid.diagnosis import refusedfields as fields
from grid.diagnosis import refusedhooks as hooks
from grid.diagnosis import refusedobjects as objects
from grid.diagnosis.diagnosis import RefusalReason
from grid.diagnosis.rules import RuleTable

NO_DRY_RUN, THROTTLED = hooks.NO_DRY_RUN, objects.THROTTLED


def explain_refusal(message: str) -> RefusalReason | None:
    """Explain the API server's message; None when it is of no known form."""
    rule = REFUSALS.find(message)
    return rule[1](rule[2]) if rule else None


_BY_POLICY = r"olicy '([^']+)'(?: with binding '[^']+')? denied request: "

# Webhooks and policies stand first: what they say in their own words may be like anything below.
REFUSALS = RuleTable[Callable[[Match], RefusalReason]](
    ("webhook-down", r'(?s)failed calling webhook "([^"]+)"(?:: (.*))?', hooks.webhook_down),
    ("webhook", r'(?s)admission webhook "([^"]+)" denied the request:? ?(.*)', hooks.webhook_denied),
    ("no-dry-run", r'admission webhook "([^"]+)" does not support dry run', hooks.no_dry_run),
    ("policy-broken",
     rf"(?s)[pP]{_BY_POLICY}(?:failed to configure \w+: (.+)|expression '.*' resulted in error: (.+))", hooks.policy_broken),
    ("policy", rf"(?s)ValidatingAdmissionP{_BY_POLICY}(.+)", hooks.policy_denied),
    ("mutating-policy",
     r"""(?s)\bpolicy ['"]([^'"]+)['"](?: with binding ['"][^'"]+['"])? denied request: (.+)""", hooks.change_failed),
    ("image-policy",
     r"(?s)image policy webh?ook backend denied one or more images: (.+)|one or more images rejected by webhook backend",
     hooks.image_denied),
    ("image-policy-down",
     r'(?s)is forbidden: (?:Post "?https?://[^\s"]+"?: |[Ee]rror contacting webhook: )(.+)', hooks.image_policy_down),
    ("always-pull", r"is forbidden: spec\.\S+\.imagePullPolicy: Unsupported value", hooks.not_always_pulled),
    ("quota", r"exceeded quota: ([^,]+), requested: (.+?), used: (.+?), limited: (.+)", amounts.quota_exceeded),
    ("must-specify", r"failed quota: ([^:]+): must specify (.+)", amounts.must_specify),
    ("quota-not-counted", r"status unknown for quota: ([^,]+), resources: ", amounts.quota_not_counted),
    ("quota-busy",
     r"resource quota evaluation timed out|Operation cannot be fulfilled on resourcequotas", amounts.quota_busy),
    ("no-quota", r"insufficient quota to (?:consume|match these scopes): (.+)", amounts.no_quota),
    ("limit-range",
     r"((?:\S+ \S+ usage|\S+ max limit to request ratio) per (?:Container|Pod|PersistentVolumeClaim) is .*)", amounts.limit_range),
    ("pod-security", r'violates PodSecurity "([^"]+)": (.+)', objects.pod_security),
    ("context-constraint",
     r"(?s)unable to validate against any security context constraint: (.+)", objects.no_context_constraint),
    ("priority-class", r"no PriorityClass with name (\S+) was found", objects.no_priority_class),
    ("service-account",
     r'[Ss]ervice ?account ([^/\s]+)/([^:\s]+)(?:: serviceaccounts? "[^"]+" not found| was not found)', objects.no_service_account),
    ("runtime-class", r'pod rejected: RuntimeClass "([^"]+)" not found', objects.no_runtime_class),
    ("node-rule",
     r"(conflict: runtimeClass\.scheduling\.nodeSelector.+|pod node label selector .*conflicts? .+|pod tolerations .*conflict .+)",
     objects.other_nodes),
    ("namespace-missing", r'(?:^|: )namespaces "([^"]+)" not found', objects.no_namespace),
    ("namespace-ends",
     r"unable to create new content in namespace (\S+) because it is being terminated", objects.namespace_ends),
    ("rights",
     r'\bUser "[^"]*" cannot (\w+) resource "([^"]+)"(?: in API group "[^"]*")?( at the cluster scope)?', objects.rights),
    ("owner-rights", r"cannot set an ownerRef on a resource you can't|cannot set blockOwnerDeletion if", objects.owner_rights),
    ("node-rights", r'\bnode "([^"]+)" (?:can only|can ?not|must not|is not allowed to) ', objects.node_rights),
    ("starting", r"is forbidden: not yet ready to handle request", objects.starting),
    ("too-large",
     r"[Rr]equest entity too large|etcdserver: request is too large|send message larger than max|Too long: .*\b(?:1048576|262144)\b",
     fields.too_large),
    ("invalid", r'(?s)(?:^|: )([A-Z][A-Za-z]+)(?:\.\S+)? "[^"]*" is invalid: (.+)', fields.invalid),
    ("unreadable", r'(?s)(?:^|: )([A-Z][A-Za-z]+) in version "[^"]*" cannot be handled as an? \w+: (.+)', fields.unreadable),
    ("database-full", r"etcdserver: mvcc: database space exceeded", objects.database_full),
    ("database-busy", r"(?s)etcdserver: (.+)", objects.database_busy),
    ("unknown-kind", r"the server could not find the requested resource|no matches for kind ", objects.unknown_kind),
    ("throttled", r"[Tt]oo many requests", objects.throttled),
)  # fmt: skip
