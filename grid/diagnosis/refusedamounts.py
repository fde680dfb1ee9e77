"""Explains refusals for an amount: a quota of the namespace that is used up, or a limit range that an object does not keep; pure.

The texts are those of Kubernetes' plugins ResourceQuota (staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go)
and LimitRanger (plugin/pkg/admission/limitranger/admission.go).
"""

from grid.core.quantity import format_cores
from grid.core.regexes import Match, RepeatedExpression
from grid.core.translation import gettext as _
from grid.core.wording import folded, listed
from grid.diagnosis.diagnosis import ASK_ADMIN, RefusalReason
from grid.diagnosis.quotawords import counted_objects, is_more, is_storage, spent
from grid.diagnosis.resources import amount_words, resource_amount

_LIMITED = {"Container": _("a container"), "Pod": _("a pod"), "PersistentVolumeClaim": _("a volume claim")}
# The plugin joins all that it objects to, of each limit range and container, as "[a, b]"; older releases end each with a full stop.
_BOUNDS = RepeatedExpression(
    r"([Mm]aximum|[Mm]inimum) (\S+) usage per (Container|Pod|PersistentVolumeClaim) is ([^\s,\]]+?)"
    r"(?:, but (request|limit) is ([^\s,\]]+?)|\. +No (request|limit) is specified)?\.?(?:[\],]|$)"
    r"|([^\s\[]+) max limit to request ratio per (Container|Pod) is ([^\s,\]]+), but "
    r"(?:provided ratio is ([^\s,\]]+?)|no (request|limit) is specified or (?:request|limit) is 0)\.?(?:[\],]|$)"
)


def quota_exceeded(match: Match) -> RefusalReason:
    name, requested, used, limited = match.groups()
    asked, taken, hard = _pairs(requested), _pairs(used), _pairs(limited)
    compared = [resource for resource in asked if resource in hard]
    parts = [spent(resource, hard[resource], taken.get(resource, "0"), asked[resource]) for resource in compared]
    if not parts:
        parts = [
            _("requested {requested}, used {used}, limited {limited}", requested=requested, used=used, limited=limited)
        ]
    never = [resource for resource in compared if is_more(resource, asked[resource], hard[resource])]
    if never:
        sentence = _(
            "The quota “{name}” of the namespace is too small for it, even with nothing else there: {parts}.",
            name=name,
            parts="; ".join(parts),
        )
        step = _("Choose a smaller tier, or ask an admin of the cluster to raise the quota.")
        if not all(_is_of_tier(resource) for resource in never):
            step = _("Ask an admin of the cluster to raise the quota.")
        return RefusalReason("quota", sentence, step)
    sentence = _("The quota “{name}” of the namespace has too little left: {parts}.", name=name, parts="; ".join(parts))
    return RefusalReason("quota", sentence, _when_free(compared), for_good=False)


def _is_of_tier(resource: str) -> bool:
    return not is_storage(resource) and counted_objects(resource) is None


def _when_free(resources: list[str]) -> str:
    """Say what frees the quota: ending pods free neither storage nor objects of other kinds."""
    counted = {counted_objects(resource) for resource in resources} - {None, ("pod", "pods")}
    if resources and all(is_storage(resource) for resource in resources):
        return _(
            "It starts when a volume claim of the namespace is deleted; an admin of the cluster can raise the quota."
        )
    if counted and all(counted_objects(resource) in counted for resource in resources):
        return _(
            "It starts when others of them in the namespace are deleted; an admin of the cluster can raise the quota."
        )
    return _("It starts when something else in the namespace ends; an admin of the cluster can raise the quota.")


def must_specify(match: Match) -> RefusalReason:
    """The server says "limits.memory for: app; requests.cpu for: app,proxy", older ones "limits.cpu,limits.memory"."""
    parts = [name for part in match[2].split(";") for name in part.partition(" for:")[0].strip(" .").split(",")]
    sentence = _(
        "The quota “{name}” of the namespace takes only pods that say their {resources}.",
        name=match[1],
        resources=listed(parts),
    )
    return RefusalReason("quota", sentence, _("Ask an admin to complete the tier, or to change the quota."))


def quota_not_counted(match: Match) -> RefusalReason:
    """A quota that was just written has no usage until the quota controller has counted."""
    sentence = _("The cluster has not yet counted what uses the quota “{name}” of the namespace.", name=match[1])
    step = _(
        "It is tried again by itself; if that does not help, ask an admin to look at the cluster's quota controller."
    )
    return RefusalReason("quota", sentence, step, for_good=False)


def quota_busy(match: Match) -> RefusalReason:
    """Two objects were counted at once, or more than the server counts within ten seconds."""
    sentence = _("The cluster was too busy to count it against the namespace's quota.")
    return RefusalReason("quota", sentence, _("It is tried again by itself."), for_good=False)


def no_quota(match: Match) -> RefusalReason:
    """The API server's own configuration (`limitedResources`) takes these only where a quota of the namespace allows them."""
    sentence = _(
        "The cluster takes this only where a quota allows it, and none of the namespace allows: {what}.",
        what=folded(match[1]),
    )
    step = _("Ask an admin of the cluster for such a quota in the namespace.")
    return RefusalReason("quota", sentence, step)


def limit_range(match: Match) -> RefusalReason:
    """Say everything that limit ranges object to, each once: containers with equal resources are objected to one by one."""
    sentences, of_pods = dict[str, None](), False
    for bound in _BOUNDS.finditer(match[1]):
        sentences[_ratio(bound) if bound[8] else _bound(bound)] = None
        of_pods = of_pods or bound[3] != "PersistentVolumeClaim"
    if not sentences:
        sentence = _("A limit range of the namespace forbids it: {objections}", objections=folded(match[1]))
        return RefusalReason("limit_range", sentence, ASK_ADMIN)
    step = _("Ask an admin of the cluster to change it.")
    if of_pods:
        step = _("Choose another tier, or ask an admin of the cluster to change it.")
    return RefusalReason("limit_range", " ".join(sentences), step)


def _bound(bound: Match) -> str:
    resource, most, what, asked, unsaid = bound[2], bound[4], bound[5], bound[6], bound[7]
    allowed = _("at most {amount}") if bound[1].lower() == "maximum" else _("at least {amount}")
    asks = ""
    if what:
        asks = _(", and the request is {amount}") if what == "request" else _(", and the limit is {amount}")
        asks = asks.format(amount=_amount_of(resource, asked))
    elif unsaid:
        asks = _(", and it says no request") if unsaid == "request" else _(", and it says no limit")
    return _(
        "A limit range of the namespace allows {allowed} for {limited}{asks}.",
        allowed=allowed.format(amount=_amount_of(resource, most)),
        limited=_LIMITED[bound[3]],
        asks=asks,
    )


def _ratio(bound: Match) -> str:
    resource, most = bound[8], _ratio_of(bound[10])
    if bound[12]:
        return _(
            "A limit range of the namespace allows a limit of {resource} of at most {most} times the request, "
            "and the tier says no {what}.",
            resource=resource,
            most=most,
            what=bound[12],
        )
    return _(
        "A limit range of the namespace allows a limit of {resource} of at most {most} times the request, "
        "and the tier's is {asked} times.",
        resource=resource,
        most=most,
        asked=_ratio_of(bound[11]),
    )


def _amount_of(resource: str, text: str) -> str:
    amount = resource_amount(resource, text)
    return amount_words(resource, amount) if amount else _("{amount} of {resource}", amount=text, resource=resource)


def _ratio_of(text: str) -> str:
    """The server writes the bound as a quantity, such as 1500m for 1.5, and what it was given as 16.666667."""
    thousandths = resource_amount("cpu", text)
    return format_cores(thousandths) if thousandths else text


def _pairs(text: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in text.split(",") if "=" in part)
