"""Explains why the API server refused to create an object: the table of all that is known of its messages; pure.

What is not for good is waited for: what was missing may appear, and who did not answer may answer. The rest needs somebody's change.

The texts are those of Kubernetes' plugin/pkg/admission: imagepolicy, priority, serviceaccount, runtimeclass, podnodeselector,
podtolerationrestriction, gc, noderestriction; of apiserver's pkg/admission/plugin/webhook (errors/statuserror.go, util/webhook/error.go),
policy/validating/dispatcher.go and policy/generic/policy_dispatcher.go there, plugin/namespace/lifecycle and
endpoints/handlers/responsewriters; and of etcd.
"""

from collections.abc import Callable

from grid.core.regexes import Expression, Match
from grid.core.translation import gettext as _
from grid.core.wording import as_sentence, folded
from grid.diagnosis import refusedvalues as values
from grid.diagnosis.diagnosis import ASK_ADMIN, TRIED_AGAIN, RefusalReason
from grid.diagnosis.rules import RuleTable

NO_DRY_RUN = "no_dry_run"  # the code of a reason that refuses nothing but the trial
# 429; Priority and Fairness answers it without a Status, so there may be no words to search.
THROTTLED = RefusalReason(
    "throttled", _("The cluster's API server has too many requests."), _("It is tried again by itself."), for_good=False
)
# Go's net, net/http and crypto/tls say most of it; the rest is of the API server's aggregator and webhook client.
WEBHOOK_TROUBLES = RuleTable[str](
    ("no-endpoints", r'no endpoints available for service "([^"]+)"', _("no pod behind its Service “{name}” is ready")),
    ("no-service", r'service(?:s)? "([^"]+)" not found', _("its Service “{name}” is missing")),
    ("no-tunnel", r"No agent available|proxy error from", _("the API server has no connection to the cluster's network")),
    ("refused", r"connection refused", _("it refuses the connection: it is probably not running")),
    ("certificate-early", r"x509: certificate .*not yet valid: current time \S+ is before", _("its certificate is not valid yet")),
    ("certificate-expired", r"x509: certificate has expired", _("its certificate has expired")),
    ("certificate-name", r"x509: certificate is (?:not )?valid for", _("its certificate is for another name")),
    ("certificate", r"\bx509: |\btls: ", _("its certificate is not trusted")),
    ("timed-out",
     r"context deadline exceeded|Client\.Timeout exceeded|i/o timeout|handshake timeout|context canceled|Timeout: request did not complete",
     _("it does not answer in time")),
    ("unreachable", r"no route to host|network is unreachable|no such host|connection reset by peer|\bEOF\b|broken pipe|lost connection",
     _("it cannot be reached")),
    ("answer", r"invalid webhook response|undecodable patch|unsupported patch type|expected webhook response",
     _("its answer is not understood")),
    ("failing",
     r"currently unable to handle the request|an error on the server|server rejected our request|could not find the requested resource",
     _("it answers with an error")),
)  # fmt: skip
_QUOTED = frozenset({"why", "violations", "error"})  # what others say, at the end of a sentence of ours

_Explain = Callable[[Match], RefusalReason]


def explain_refusal(message: str) -> RefusalReason | None:
    """Explain the API server's message; None when it is of no known form."""
    rule = REFUSALS.find(message)
    return rule[1](rule[2]) if rule else None


def _because(code: str, sentence: str, step: str = ASK_ADMIN, *, for_good: bool = True) -> _Explain:
    """Return an explanation by a sentence whose fields are the named groups of the rule's pattern."""

    def explain(match: Match) -> RefusalReason:
        words = {
            name: as_sentence(folded(text)) if name in _QUOTED else text for name, text in match.groupdict().items()
        }
        return RefusalReason(code, sentence.format(**words), step, for_good)

    return explain


_TOO_MUCH = Expression(r"(?:cpu|memory) (?:limit|request) <\S+> is higher than")  # of Gatekeeper's library of policies
_SMALLER = _("Choose a smaller tier, or ask an admin of the cluster about the rule.")


def _webhook_denied(match: Match) -> RefusalReason:
    why = match[2].strip()
    if why in ("", "without explanation"):
        return RefusalReason("webhook", _("The cluster's rule {name} forbids it.", name=match[1]), ASK_ADMIN)
    sentence = _("The cluster's rule {name} forbids it: {why}", name=match[1], why=as_sentence(folded(why)))
    return RefusalReason("webhook", sentence, _SMALLER if _TOO_MUCH.search(why) else ASK_ADMIN)


def _webhook_down(match: Match) -> RefusalReason:
    """It forbids nothing: nobody could be asked. The API server refuses all that the webhook guards until it is repaired; without
    `defaultAllow`, ImagePolicyWebhook refuses all pods while its backend does not answer, with Go's error as the reason."""
    *names, why = match.groups()
    which = _("webhook {name}", name=names[0]) if names else _("image policy")
    sentence = _("The cluster's {which} has to allow it first, and could not be asked: {trouble}.")
    sentence = sentence.format(which=which, trouble=_trouble(why or ""))
    return RefusalReason("webhook_down", sentence, _REPAIR, for_good=False)


def _trouble(message: str) -> str:
    """What no rule knows is said in its own words, without the address that was called."""
    rule = WEBHOOK_TROUBLES.find(message)
    if rule is None:
        return folded(message.rpartition('": ')[2]).rstrip(".") or _("the API server does not say why")
    _key, words, match = rule
    return words.format(name=match[1]) if "{name}" in words else words


def _policy_broken(match: Match) -> RefusalReason:
    """With `failurePolicy: Fail` an error of the policy refuses everything; parameters that are missing may appear."""
    sentence = _("The cluster's policy {name} has an error, so it lets nothing through: {error}")
    sentence = sentence.format(name=match[1], error=as_sentence(folded(match[2] or match[3])))
    return RefusalReason("policy_broken", sentence, _CORRECT_POLICY, for_good=not match[2])


def _no_service_account(match: Match) -> RefusalReason:
    """The cluster's own controller creates the account `default`, a moment after the namespace."""
    sentence = _("The namespace {namespace} has no service account “{name}”.", namespace=match[1], name=match[2])
    step = TRIED_AGAIN if match[2] == "default" else _STARTS_WITH_IT
    return RefusalReason("missing", sentence, step, for_good=False)


def _rights(match: Match) -> RefusalReason:
    where = _("in the cluster") if match[3] else _("in the namespace")
    sentence = _("Compute Grid may not {verb} {resource} {where}.", verb=match[1], resource=match[2], where=where)
    return RefusalReason("rights", sentence, _APPLY_AGAIN)


_OTHER_IMAGE = _("Choose another environment, or ask an admin of the cluster.")
_APPLY_AGAIN = _("Ask an admin of the cluster to apply deploy/access.yaml again.")
_CORRECT_POLICY = _("Ask an admin of the cluster to correct the policy.")
_REPAIR = _("It is tried again by itself; if that does not help, ask an admin of the cluster to repair it.")
_STARTS_WITH_IT = _("It starts when an admin of the cluster creates it.")
_BY_POLICY = r"olicy '(?P<name>[^']+)'(?: with binding '[^']+')? denied request: "

# Webhooks and policies stand first: what they say in their own words may be like anything below.
REFUSALS = RuleTable[_Explain](
    ("webhook-down", r'(?s)(?:failed calling webhook "|conversion webhook for )([^",]+)[^:]*(?:: (.*))?', _webhook_down),
    ("webhook", r'(?s)admission webhook "([^"]+)" denied the request:? ?(.*)', _webhook_denied),
    # The webhook has side effects, so it is not asked for what is only tried: nothing is known of the real object.
    ("no-dry-run", r'admission webhook "(?P<name>[^"]+)" does not support dry run', _because(NO_DRY_RUN,
     _("It cannot be tried: the cluster's rule {name} is asked only about real launches."), _("You can launch it anyway."))),
    ("policy-broken", rf"(?s)[pP]{_BY_POLICY}(?:failed to configure \w+: (.+)|expression '.*' resulted in error: (.+))", _policy_broken),
    ("policy", rf"(?s)ValidatingAdmissionP{_BY_POLICY}(?P<why>.+)", _because(
        "policy", _("The cluster's policy {name} forbids it: {why}"))),
    # A MutatingAdmissionPolicy forbids nothing by itself: each of its refusals is a failure to change the object.
    ("mutating-policy", r"""(?s)\bpolicy ['"](?P<name>[^'"]+)['"](?: with binding ['"][^'"]+['"])? denied request: (?P<error>.+)""",
     _because("policy_broken", _("The cluster's policy {name} has to change it first, and failed: {error}"), _CORRECT_POLICY)),
    ("image-policy", r"(?s)image policy webh?ook backend denied one or more images: (?P<why>.+)", _because(
        "image_policy", _("The cluster's image policy forbids its image: {why}"), _OTHER_IMAGE)),
    ("image-rejected", r"one or more images rejected by webhook backend", _because(
        "image_policy", _("The cluster's image policy forbids its image."), _OTHER_IMAGE)),
    ("image-policy-down", r'(?s)is forbidden: (?:Post "?https?://[^\s"]+"?: |[Ee]rror contacting webhook: )(.+)', _webhook_down),
    # AlwaysPullImages changes every pod itself; it refuses what another webhook has changed back.
    ("always-pull", r"is forbidden: spec\.\S+\.imagePullPolicy: Unsupported value", _because(
        "image_policy", _("The cluster takes only pods that pull their image at each start (AlwaysPullImages)."),
        _("Ask an admin of the cluster which webhook changes the pull policy."))),
    ("quota", r"exceeded quota: ([^,]+), requested: (.+?), used: (.+?), limited: (.+)", values.quota_exceeded),
    ("must-specify", r"failed quota: ([^:]+): must specify (.+)", values.must_specify),
    # A quota that was just written has no usage until the quota controller has counted.
    ("quota-not-counted", r"status unknown for quota: (?P<name>[^,]+), resources: ", _because("quota",
     _("The cluster has not yet counted what uses the quota “{name}” of the namespace."),
     _("It is tried again by itself; if that does not help, ask an admin to look at the cluster's quota controller."), for_good=False)),
    # Two objects were counted at once, or more than the server counts within ten seconds.
    ("quota-busy", r"resource quota evaluation timed out|Operation cannot be fulfilled on resourcequotas", _because("quota",
     _("The cluster was too busy to count it against the namespace's quota."), _("It is tried again by itself."), for_good=False)),
    ("no-quota", r"insufficient quota to (?:consume|match these scopes): (.+)", values.no_quota),
    ("limit-range", r"((?:\S+ \S+ usage|\S+ max limit to request ratio) per (?:Container|Pod|PersistentVolumeClaim) is .*)",
     values.limit_range),
    ("pod-security", r'violates PodSecurity "(?P<level>[^"]+)": (?P<violations>.+)', _because(
        "pod_security", _("Pod security of the namespace ({level}) forbids it: {violations}"))),
    # OpenShift's own admission (apiserver-library-go, securitycontextconstraints/sccadmission).
    ("context-constraint", r"(?s)unable to validate against any security context constraint: (?P<why>.+)", _because(
        "pod_security", _("No security context constraint of OpenShift allows it: {why}"),
        _("Ask an admin of the cluster for a constraint that allows the pods of executions."))),
    ("priority-class", r"no PriorityClass with name (?P<name>\S+) was found", _because(
        "missing", _("The cluster has no priority class “{name}”."), _STARTS_WITH_IT, for_good=False)),
    ("service-account", r'[Ss]ervice ?account ([^/\s]+)/([^:\s]+)(?:: serviceaccounts? "[^"]+" not found| was not found)',
     _no_service_account),
    ("claim-template", r'resource claim template "(?P<name>[^"]+)": .*not found', _because(
        "missing", _("The namespace has no resource claim template “{name}”."),
        _("Ask your admin to create it, or to correct the tier."), for_good=False)),
    ("runtime-class", r'pod rejected: RuntimeClass "(?P<name>[^"]+)" not found', _because(
        "missing", _("The cluster has no runtime class “{name}”."), _STARTS_WITH_IT, for_good=False)),
    ("node-rule", (r"(?P<why>conflict: runtimeClass\.scheduling\.nodeSelector.+|pod node label selector .*conflicts? .+"
     r"|pod tolerations .*conflict .+)"), _because("node_rule", _("The namespace allows other nodes than those of the tier: {why}"),
     _("Choose a tier of another node pool, or ask an admin of the cluster."))),
    ("namespace-missing", r'(?:^|: )namespaces "(?P<name>[^"]+)" not found', _because(
        "missing", _("The namespace {name} does not exist."), TRIED_AGAIN, for_good=False)),
    ("namespace-ends", r"unable to create new content in namespace (?P<name>\S+) because it is being terminated",
     _because("namespace", _("The namespace {name} is being deleted."))),
    ("rights", r'\bUser "[^"]*" cannot (\w+) resource "([^"]+)"(?: in API group "[^"]*")?( at the cluster scope)?', _rights),
    ("owner-rights", r"cannot set an ownerRef on a resource you can't|cannot set blockOwnerDeletion if", _because(
        "rights", _("Compute Grid may not say which object owns it: the cluster (OwnerReferencesPermissionEnforcement) "
                    "wants the right to delete it and to set finalizers of its owner."), _APPLY_AGAIN)),
    ("node-rights", r'\bnode "(?P<name>[^"]+)" (?:can only|can ?not|must not|is not allowed to) ', _because(
        "rights", _("Compute Grid uses the credentials of the node {name}, which may not do this."),
        _("Ask an admin to give Compute Grid the service account of deploy/access.yaml."))),
    ("starting", r"is forbidden: not yet ready to handle request", _because(
        "busy", _("The cluster's API server is still starting."), TRIED_AGAIN, for_good=False)),
    # The API server takes 3 MiB, etcd 1.5 MiB, a ConfigMap or Secret 1 MiB, and annotations together 256 KiB.
    ("too-large",
     r"[Rr]equest entity too large|etcdserver: request is too large|send message larger than max|Too long: .*\b(?:1048576|262144)\b",
     _because("too_large", _("It is larger than the cluster's API server takes."),
              _("Shorten its script, arguments or environment variables; put long text into a file of the project."))),
    ("invalid", r'(?s)(?:^|: )([A-Z][A-Za-z]+)(?:\.\S+)? "[^"]*" is invalid: (.+)', values.invalid),
    ("unreadable", r'(?s)(?:^|: )([A-Z][A-Za-z]+) in version "[^"]*" cannot be handled as an? \w+: (.+)', values.unreadable),
    ("database-full", r"etcdserver: mvcc: database space exceeded", _because(
        "busy", _("The cluster's own database (etcd) is full, so it stores nothing new."),
        _("It is tried again by itself; ask an admin of the cluster to make room in etcd."), for_good=False)),
    ("database-busy", r"(?s)etcdserver: (?P<why>.+)", _because(
        "busy", _("The cluster's own database (etcd) did not take it: {why}"), TRIED_AGAIN, for_good=False)),
    ("unknown-kind", r"the server could not find the requested resource|no matches for kind ", _because(
        "unknown_kind", _("The cluster does not know objects of this kind."),
        _("Ask an admin of the cluster: its Kubernetes is too old, or an extension is missing."), for_good=False)),
    ("throttled", r"[Tt]oo many requests", lambda _match: THROTTLED),
)  # fmt: skip
