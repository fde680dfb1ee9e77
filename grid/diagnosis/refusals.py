"""Explains why the API server refused to create an object: a quota, a limit range, pod security or a webhook of the cluster; pure."""

from collections.abc import Callable
from dataclasses import dataclass

from grid.core.quantity import format_cores
from grid.core.regexes import Match
from grid.core.translation import gettext as _
from grid.core.wording import listed
from grid.diagnosis.resources import amount_words, resource_amount
from grid.diagnosis.rules import RuleTable
from grid.diagnosis.shortages import is_more, spent

_LONGEST = 200
_LIMITED = {"Container": _("a container"), "Pod": _("a pod"), "PersistentVolumeClaim": _("a volume claim")}


@dataclass(frozen=True, slots=True)
class RefusalReason:
    """The reason in words and what to do; `for_good` when trying again without a change is useless."""

    code: str
    sentence: str
    next_step: str
    for_good: bool = True


def explain_refusal(message: str) -> RefusalReason | None:
    """Explain the API server's message; None when it is of no known form."""
    rule = REFUSALS.find(message)
    return rule[1](rule[2]) if rule else None


def _quota(match: Match) -> RefusalReason:
    name, requested, used, limited = match.groups()
    asked, taken, hard = _pairs(requested), _pairs(used), _pairs(limited)
    parts = [
        spent(resource, hard[resource], taken.get(resource, "0"), asked[resource])
        for resource in asked
        if resource in hard
    ]
    if not parts:
        parts = [
            _("requested {requested}, used {used}, limited {limited}", requested=requested, used=used, limited=limited)
        ]
    never = [resource for resource in asked if resource in hard and is_more(resource, asked[resource], hard[resource])]
    if never:
        sentence = _(
            "The quota “{name}” of the namespace is too small for it, even with nothing else there: {parts}.",
            name=name,
            parts="; ".join(parts),
        )
        return RefusalReason(
            "quota", sentence, _("Choose a smaller tier, or ask an admin of the cluster to raise the quota.")
        )
    sentence = _("The quota “{name}” of the namespace has too little left: {parts}.", name=name, parts="; ".join(parts))
    step = _("It starts when something else in the namespace ends; an admin of the cluster can raise the quota.")
    return RefusalReason("quota", sentence, step, for_good=False)


def _must_specify(match: Match) -> RefusalReason:
    """The server says "limits.memory for: app; requests.cpu for: app,proxy", older ones "limits.cpu,limits.memory"."""
    parts = [name for part in match[2].split(";") for name in part.partition(" for:")[0].strip(" .").split(",")]
    sentence = _(
        "The quota “{name}” of the namespace takes only pods that say their {resources}.",
        name=match[1],
        resources=listed(parts),
    )
    return RefusalReason("quota", sentence, _("Ask an admin to complete the tier, or to change the quota."))


def _range(match: Match) -> RefusalReason:
    bound, resource, kind, most, what, asked = match.groups()
    allowed = _("at most {amount}") if bound == "maximum" else _("at least {amount}")
    asks = ""
    if what:
        asks = _(", and the request is {amount}") if what == "request" else _(", and the limit is {amount}")
        asks = asks.format(amount=_amount_of(resource, asked))
    sentence = _(
        "A limit range of the namespace allows {allowed} for {limited}{asks}.",
        allowed=allowed.format(amount=_amount_of(resource, most)),
        limited=_LIMITED[kind],
        asks=asks,
    )
    if kind == "PersistentVolumeClaim":
        return RefusalReason("limit_range", sentence, _("Ask an admin of the cluster to change it."))
    return RefusalReason(
        "limit_range", sentence, _("Choose another tier, or ask an admin of the cluster to change it.")
    )


def _ratio(match: Match) -> RefusalReason:
    sentence = _(
        "A limit range of the namespace allows a limit of {resource} of at most {most} times the request, "
        "and the tier's is {asked} times.",
        resource=match[1],
        most=_ratio_of(match[3]),
        asked=_ratio_of(match[4]),
    )
    return RefusalReason(
        "limit_range", sentence, _("Choose another tier, or ask an admin of the cluster to change it.")
    )


def _namespace_ends(match: Match) -> RefusalReason:
    return RefusalReason(
        "namespace", _("The namespace {name} is being deleted.", name=match[1]), _("Ask an admin of the cluster.")
    )


def _pod_security(match: Match) -> RefusalReason:
    sentence = _(
        "Pod security of the namespace ({level}) forbids it: {violations}", level=match[1], violations=_short(match[2])
    )
    return RefusalReason("pod_security", sentence, _("Ask an admin of the cluster."))


def _webhook(match: Match) -> RefusalReason:
    reason = f": {_short(match[2])}" if match[2].strip() else "."
    return RefusalReason(
        "webhook",
        _("The cluster's rule {name} forbids it{said}", name=match[1], said=reason),
        _("Ask an admin of the cluster."),
    )


def _rights(match: Match) -> RefusalReason:
    where = _("in the cluster") if match[3] else _("in the namespace")
    sentence = _("Compute Grid may not {verb} {resource} {where}.", verb=match[1], resource=match[2], where=where)
    return RefusalReason("rights", sentence, _("Ask an admin of the cluster to apply deploy/access.yaml again."))


REFUSALS = RuleTable[Callable[[Match], RefusalReason]](
    ("quota", r"exceeded quota: ([^,]+), requested: (.+?), used: (.+?), limited: (.+)", _quota),
    ("must-specify", r"failed quota: ([^:]+): must specify (.+)", _must_specify),
    ("pod-security", r'violates PodSecurity "([^"]+)": (.+)', _pod_security),
    ("webhook", r'(?s)admission webhook "([^"]+)" denied the request:? ?(.*)', _webhook),
    ("range",
     r"(maximum|minimum) (\S+) usage per (Container|Pod|PersistentVolumeClaim) is (\S+?)(?:, but (request|limit) is (\S+?))?\.?(?:[\],]|$)",
     _range),
    ("ratio",
     r"(\S+) max limit to request ratio per (Container|Pod) is (\S+), but provided ratio is (\S+?)\.?(?:[\],]|$)", _ratio),
    ("namespace-ends", r"unable to create new content in namespace (\S+) because it is being terminated", _namespace_ends),
    ("rights", r'\bUser "[^"]*" cannot (\w+) resource "([^"]+)"(?: in API group "[^"]*")?( at the cluster scope)?', _rights),
)  # fmt: skip


def _amount_of(resource: str, text: str) -> str:
    amount = resource_amount(resource, text)
    return amount_words(resource, amount) if amount else _("{amount} of {resource}", amount=text, resource=resource)


def _ratio_of(text: str) -> str:
    """The server writes the bound as a quantity, such as 1500m for 1.5, and what it was given as 16.666667."""
    thousandths = resource_amount("cpu", text)
    return format_cores(thousandths) if thousandths else text


def _pairs(text: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in text.split(",") if "=" in part)


def _short(text: str) -> str:
    one_line = " ".join(text.split())
    return one_line if len(one_line) <= _LONGEST else f"{one_line[: _LONGEST - 1]}…"
