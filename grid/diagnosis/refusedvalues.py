"""Explains refusals for what an object says: amounts that a quota or a limit range does not allow, and invalid fields; pure.

The texts are those of Kubernetes' plugins ResourceQuota (staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go)
and LimitRanger (plugin/pkg/admission/limitranger/admission.go), and of its staging/src/k8s.io/apimachinery/pkg:
util/validation/field/errors.go, api/errors and runtime/error.go.
"""

from grid.core.quantity import format_cores
from grid.core.regexes import Expression, Match, RepeatedExpression
from grid.core.translation import gettext as _
from grid.core.wording import as_sentence, folded, listed
from grid.diagnosis.beside import EXECUTOR, FRONT, PREPARER, PROGRAM
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
_MOST = 3  # fields that a sentence names; the whole answer is evidence
# Several are joined as "[a, b]"; what is said of a field may have commas and colons itself, so it lasts until the next field.
_FIELDS = RepeatedExpression(
    r'([A-Za-z][^\s:,"]*): '
    r"(Required value|Invalid value|Unsupported value|Duplicate value|Not found|Forbidden|Too long|Too many|Too few|Type invalid)\b"
)
_UNFIT = _("Ask an admin: this release of Compute Grid and the cluster's Kubernetes do not fit together.")
_OF_TIER = _("Choose another tier, or ask an admin to correct this tier.")
_OWNERS = (
    (Expression(r"resources\b|nodeSelector|affinity|tolerations|runtimeClassName|priorityClassName"), _OF_TIER),
    (Expression(r"\.image\b|\.imagePull"), _("Choose another environment, or ask an admin to correct this environment.")),
    (Expression(r"\.env\["), _("Correct the environment variables, then launch it again.")),
)  # fmt: skip


def quota_exceeded(match: Match) -> RefusalReason:
    name, requested, used, limited = match.groups()
    asked, taken, hard = _pairs(requested), _pairs(used), _pairs(limited)
    compared = [resource for resource in asked if resource in hard]
    parts = [spent(resource, hard[resource], taken.get(resource, "0"), asked[resource]) for resource in compared]
    spendings = "; ".join(parts) or _(
        "requested {requested}, used {used}, limited {limited}", requested=requested, used=used, limited=limited
    )
    never = [resource for resource in compared if is_more(resource, asked[resource], hard[resource])]
    if not never:
        sentence = _("The quota “{name}” of the namespace has too little left: {parts}.", name=name, parts=spendings)
        return RefusalReason("quota", sentence, _when_free(compared), for_good=False)
    sentence = _("The quota “{name}” of the namespace is too small for it, even with nothing else there: {parts}.")
    step = _("Choose a smaller tier, or ask an admin of the cluster to raise the quota.")
    if any(is_storage(resource) or counted_objects(resource) is not None for resource in never):
        step = _("Ask an admin of the cluster to raise the quota.")
    return RefusalReason("quota", sentence.format(name=name, parts=spendings), step)


def _when_free(resources: list[str]) -> str:
    """Say what frees the quota: ending pods free neither storage nor objects of other kinds."""
    if resources and all(map(is_storage, resources)):
        return _(
            "It starts when a volume claim of the namespace is deleted; an admin of the cluster can raise the quota."
        )
    if resources and {None, ("pod", "pods")}.isdisjoint(map(counted_objects, resources)):
        return _(
            "It starts when others of them in the namespace are deleted; an admin of the cluster can raise the quota."
        )
    return _("It starts when something else in the namespace ends; an admin of the cluster can raise the quota.")


def must_specify(match: Match) -> RefusalReason:
    """The server says "limits.memory for: app; requests.cpu for: app,proxy", older ones "limits.cpu,limits.memory"."""
    pairs = [part.partition(" for:")[::2] for part in match[2].split(";")]
    parts = [name for resources, _containers in pairs for name in resources.strip(" .").split(",")]
    others = dict.fromkeys(name.strip(" .") for _resources, names in pairs for name in names.split(",") if name)
    sentence = _("The quota “{name}” of the namespace takes only pods that say their {resources}.")
    step = _("Ask an admin to complete the tier, or to change the quota.")
    if others and others.keys().isdisjoint((PROGRAM, FRONT, EXECUTOR, PREPARER)):
        sentence = _("The quota “{name}” of the namespace wants {resources} of each container; none in {others}.")
        step = _("Ask an admin of the cluster: what adds such containers, like a service mesh, has to set them.")
    sentence = sentence.format(name=match[1], resources=listed(parts), others=listed(others or [""]))
    return RefusalReason("quota", sentence, step)


def no_quota(match: Match) -> RefusalReason:
    """The API server's own configuration (`limitedResources`) takes these only where a quota of the namespace allows them."""
    what = folded(match[1])
    sentence = _(
        "The cluster takes this only where a quota allows it, and none of the namespace allows: {what}.", what=what
    )
    return RefusalReason("quota", sentence, _("Ask an admin of the cluster for such a quota in the namespace."))


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
    allowed = allowed.format(amount=_amount_of(resource, most))
    sentence = _("A limit range of the namespace allows {allowed} for {limited}{asks}.")
    return sentence.format(allowed=allowed, limited=_LIMITED[bound[3]], asks=asks)


def _ratio(bound: Match) -> str:
    resource, most = bound[8], _ratio_of(bound[10])
    sentence = _(
        "A limit range of the namespace allows a limit of {resource} of at most {most} times the request, "
        "and the tier's is {asked} times."
    )
    if bound[12]:
        sentence = _(
            "A limit range of the namespace allows a limit of {resource} of at most {most} times the request, "
            "and the tier says no {what}."
        )
    return sentence.format(resource=resource, most=most, what=bound[12], asked=_ratio_of(bound[11] or ""))


def _amount_of(resource: str, text: str) -> str:
    amount = resource_amount(resource, text)
    return amount_words(resource, amount) if amount else _("{amount} of {resource}", amount=text, resource=resource)


def _ratio_of(text: str) -> str:
    """The server writes the bound as a quantity, such as 1500m for 1.5, and what it was given as 16.666667."""
    thousandths = resource_amount("cpu", text)
    return format_cores(thousandths) if thousandths else text


def _pairs(text: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in text.split(",") if "=" in part)


def invalid(match: Match) -> RefusalReason:
    kind, text = match[1], match[2].removeprefix("[").removesuffix("]")
    places = list(_FIELDS.finditer(text))
    ends = [place.start() for place in places[1:]] + [len(text)]
    problems = {_problem(place, text[place.end() : end]): None for place, end in zip(places, ends, strict=False)}
    named = [*problems][:_MOST] or [folded(text)]
    if more := len(problems) - len(named):
        named += [_("{count:,} more", count=more)] if more > 0 else []
    sentence = _("The cluster finds its {kind} invalid: {problems}", kind=kind, problems=as_sentence("; ".join(named)))
    fields = [place[1] for place in places]
    step = next((step for pattern, step in _OWNERS for field in fields if pattern.search(field)), _UNFIT)
    if kind == "PersistentVolumeClaim":
        step = _("Ask an admin to correct the storage of executions.")
    return RefusalReason("invalid", sentence, step)


def _problem(place: Match, rest: str) -> str:
    field, sort, text = place[1], place[2], rest.strip(" ,").removeprefix(": ").rstrip(".")
    value, _colon, why = text.partition(": ")
    value, why, detail = folded(value), folded(why), folded(text)
    if sort == "Required value":
        missing = _("{field} is missing ({why})") if detail else _("{field} is missing")
        return missing.format(field=field, why=detail)
    if sort == "Forbidden":
        return _("{field} is not allowed here: {why}", field=field, why=detail)
    if sort == "Duplicate value":
        return _("{field} repeats {value}", field=field, value=detail)
    if sort == "Not found":
        return _("{field} names {value}, which does not exist", field=field, value=detail)
    if not why:
        return _("{field} is not valid: {why}", field=field, why=detail or sort)
    return _("{field} is {value}: {why}", field=field, value=value, why=why)


def unreadable(match: Match) -> RefusalReason:
    kind, why = match[1], match[2]
    sentence = _("The cluster cannot read its {kind}: {why}", kind=kind, why=as_sentence(folded(why)))
    # runtime/error.go wraps all; this one is of api/resource/quantity.go.
    is_amount = "quantities must match" in why or "unable to parse quantity" in why
    return RefusalReason("invalid", sentence, _OF_TIER if is_amount else _UNFIT)
