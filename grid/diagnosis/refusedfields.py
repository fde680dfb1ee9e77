"""Explains that the API server cannot read an object or finds fields of it invalid, and whose the fields are; pure.

The texts are those of Kubernetes' staging/src/k8s.io/apimachinery/pkg: util/validation/field/errors.go, api/errors and runtime/error.go.
"""

from grid.core.regexes import Expression, Match, RepeatedExpression
from grid.core.translation import gettext as _
from grid.core.wording import as_sentence, folded
from grid.diagnosis.diagnosis import RefusalReason

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
    (
        Expression(r"\.image\b|\.imagePull"),
        _("Choose another environment, or ask an admin to correct this environment."),
    ),
    (Expression(r"\.env\["), _("Correct the environment variables, then launch it again.")),
)


def invalid(match: Match) -> RefusalReason:
    kind, text = match[1], match[2].removeprefix("[").removesuffix("]")
    places = list(_FIELDS.finditer(text))
    ends = [place.start() for place in places[1:]] + [len(text)]
    problems = {_problem(place, text[place.end() : end]): None for place, end in zip(places, ends, strict=False)}
    named = [*problems][:_MOST] or [folded(text)]
    if more := len(problems) - len(named):
        named += [_("{count:,} more", count=more)] if more > 0 else []
    sentence = _("The cluster finds its {kind} invalid: {problems}", kind=kind, problems=as_sentence("; ".join(named)))
    return RefusalReason("invalid", sentence, _step(kind, [place[1] for place in places]))


def _problem(place: Match, rest: str) -> str:
    field, sort, text = place[1], place[2], rest.strip(" ,").removeprefix(": ").rstrip(".")
    value, _colon, why = text.partition(": ")
    value, why, detail = folded(value), folded(why), folded(text)
    if sort == "Required value":
        return (
            _("{field} is missing ({why})", field=field, why=detail) if detail else _("{field} is missing", field=field)
        )
    if sort == "Forbidden":
        return _("{field} is not allowed here: {why}", field=field, why=detail)
    if sort == "Duplicate value":
        return _("{field} repeats {value}", field=field, value=detail)
    if sort == "Not found":
        return _("{field} names {value}, which does not exist", field=field, value=detail)
    if not why:
        return _("{field} is not valid: {why}", field=field, why=detail or sort)
    return _("{field} is {value}: {why}", field=field, value=value, why=why)


def _step(kind: str, fields: list[str]) -> str:
    if kind == "PersistentVolumeClaim":
        return _("Ask an admin to correct the storage of executions.")
    return next((step for pattern, step in _OWNERS for field in fields if pattern.search(field)), _UNFIT)


def unreadable(match: Match) -> RefusalReason:
    kind, why = match[1], match[2]
    sentence = _("The cluster cannot read its {kind}: {why}", kind=kind, why=as_sentence(folded(why)))
    # runtime/error.go wraps all; this one is of api/resource/quantity.go.
    is_amount = "quantities must match" in why or "unable to parse quantity" in why
    return RefusalReason("invalid", sentence, _OF_TIER if is_amount else _UNFIT)


def too_large(match: Match) -> RefusalReason:
    """The API server takes 3 MiB, etcd 1.5 MiB, a ConfigMap or Secret 1 MiB, and annotations together 256 KiB."""
    sentence = _("It is larger than the cluster's API server takes.")
    step = _("Shorten its script, arguments or environment variables; put long text into a file of the project.")
    return RefusalReason("too_large", sentence, step)
