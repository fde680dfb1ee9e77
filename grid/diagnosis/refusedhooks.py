"""Explains what webhooks and policies of the cluster say to an object: that they forbid it, or that they could not be asked; pure.

The texts are those of Kubernetes' staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook (errors/statuserror.go, util/webhook/error.go),
of policy/validating/dispatcher.go and policy/generic/policy_dispatcher.go there, and of plugin/pkg/admission/imagepolicy.
"""

from grid.core.regexes import Match
from grid.core.translation import gettext as _
from grid.core.wording import as_sentence, folded
from grid.diagnosis.diagnosis import ASK_ADMIN, RefusalReason
from grid.diagnosis.rules import RuleTable

NO_DRY_RUN = "no_dry_run"  # the code of a reason that refuses nothing but the trial
# Go's net, net/http and crypto/tls say most of it; the rest is of the API server's aggregator and webhook client.
WEBHOOK_TROUBLES = RuleTable[str](
    ("no-endpoints", r'no endpoints available for service "([^"]+)"', _("no pod behind its Service “{name}” is ready")),
    ("no-service", r'service(?:s)? "([^"]+)" not found', _("its Service “{name}” is missing")),
    ("no-tunnel", r"No agent available|proxy error from", _("the API server has no connection to the cluster's network")),
    ("refused", r"connection refused", _("it refuses the connection: it is probably not running")),
    ("certificate", r"\bx509: |\btls: ", _("its certificate is not trusted")),
    ("timed-out",
     r"context deadline exceeded|Client\.Timeout exceeded|i/o timeout|handshake timeout|context canceled|Timeout: request did not complete",
     _("it does not answer in time")),
    ("unreachable",
     r"no route to host|network is unreachable|no such host|connection reset by peer|\bEOF\b|broken pipe|lost connection",
     _("it cannot be reached")),
    ("answer",
     r"invalid webhook response|undecodable patch|unsupported patch type|expected webhook response",
     _("its answer is not understood")),
    ("failing",
     r"currently unable to handle the request|an error on the server|server rejected our request|could not find the requested resource",
     _("it answers with an error")),
)  # fmt: skip


def webhook_denied(match: Match) -> RefusalReason:
    why = match[2].strip()
    if why in ("", "without explanation"):
        return RefusalReason("webhook", _("The cluster's rule {name} forbids it.", name=match[1]), ASK_ADMIN)
    sentence = _("The cluster's rule {name} forbids it: {why}", name=match[1], why=as_sentence(folded(why)))
    return RefusalReason("webhook", sentence, ASK_ADMIN)


def webhook_down(match: Match) -> RefusalReason:
    """It forbids nothing: nobody could be asked. The API server refuses all that the webhook guards until it is repaired."""
    sentence = _(
        "The cluster's webhook {name} has to allow it first, and could not be asked: {trouble}.",
        name=match[1],
        trouble=_trouble(match[2] or ""),
    )
    return RefusalReason("webhook_down", sentence, _REPAIR, for_good=False)


def image_policy_down(match: Match) -> RefusalReason:
    """Without `defaultAllow`, ImagePolicyWebhook forbids all pods while its backend does not answer, with Go's error as the reason."""
    sentence = _(
        "The cluster's image policy has to allow it first, and could not be asked: {trouble}.",
        trouble=_trouble(match[1]),
    )
    return RefusalReason("webhook_down", sentence, _REPAIR, for_good=False)


_REPAIR = _("It is tried again by itself; if that does not help, ask an admin of the cluster to repair it.")


def _trouble(message: str) -> str:
    """What no rule knows is said in its own words, without the address that was called."""
    rule = WEBHOOK_TROUBLES.find(message)
    if rule is None:
        return folded(message.rpartition('": ')[2]).rstrip(".") or _("the API server does not say why")
    _key, words, match = rule
    return words.format(name=match[1]) if "{name}" in words else words


def no_dry_run(match: Match) -> RefusalReason:
    """The webhook has side effects, so the API server does not ask it for what is only tried: nothing is known of the real object."""
    sentence = _("It cannot be tried: the cluster's rule {name} is asked only about real launches.", name=match[1])
    return RefusalReason(NO_DRY_RUN, sentence, _("You can launch it anyway."))


def image_denied(match: Match) -> RefusalReason:
    step = _("Choose another environment, or ask an admin of the cluster.")
    if not match[1]:
        return RefusalReason("image_policy", _("The cluster's image policy forbids its image."), step)
    sentence = _("The cluster's image policy forbids its image: {why}", why=as_sentence(folded(match[1])))
    return RefusalReason("image_policy", sentence, step)


def not_always_pulled(match: Match) -> RefusalReason:
    """AlwaysPullImages changes every pod itself; it refuses what another webhook has changed back."""
    sentence = _("The cluster takes only pods that pull their image at each start (AlwaysPullImages).")
    return RefusalReason(
        "image_policy", sentence, _("Ask an admin of the cluster which webhook changes the pull policy.")
    )


def policy_denied(match: Match) -> RefusalReason:
    sentence = _("The cluster's policy {name} forbids it: {why}", name=match[1], why=as_sentence(folded(match[2])))
    return RefusalReason("policy", sentence, ASK_ADMIN)


def policy_broken(match: Match) -> RefusalReason:
    """With `failurePolicy: Fail` an error of the policy refuses everything; parameters that are missing may appear."""
    sentence = _(
        "The cluster's policy {name} has an error, so it lets nothing through: {error}",
        name=match[1],
        error=as_sentence(folded(match[2] or match[3])),
    )
    step = _("Ask an admin of the cluster to correct the policy.")
    return RefusalReason("policy_broken", sentence, step, for_good=not match[2])


def change_failed(match: Match) -> RefusalReason:
    """A MutatingAdmissionPolicy forbids nothing by itself: each of its refusals is a failure to change the object."""
    sentence = _(
        "The cluster's policy {name} has to change it first, and failed: {error}",
        name=match[1],
        error=as_sentence(folded(match[2])),
    )
    return RefusalReason("policy_broken", sentence, _("Ask an admin of the cluster to correct the policy."))
