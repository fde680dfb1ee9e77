"""LimitRange: the amounts that pods of a namespace get when they state none, and the least and most that they may state."""

from collections.abc import Iterable, Mapping
from decimal import Decimal

from grid.core.quantity import parse_quantity
from grid.sandbox.apiserver.kinds import PODS, Object, ServedKind
from grid.sandbox.apiserver.quantities import canonical, is_binary
from grid.sandbox.apiserver.quota import pod_amounts
from grid.sandbox.apiserver.status import forbidden
from grid.sandbox.apiserver.store import ObjectStore

RANGES = "limitranges"
_SET_BY = "kubernetes.io/limit-ranger"

Amounts = Mapping[str, str]


def limits_of(store: ObjectStore, namespace: str) -> list[Object]:
    """Return the limits of all the namespace's ranges, in the ranges' order."""
    records = store.records(RANGES, prefix=f"{namespace}/")
    return [limit for record in records for limit in (record.obj.get("spec") or {}).get("limits") or ()]


def fill_in(limits: Iterable[Object], pod: Object) -> None:
    """Give each container of a new pod the requests and limits that it leaves out, and note on the pod what was set."""
    defaulted: list[str] = []
    for limit in limits:
        if limit.get("type") != "Container":
            continue
        for group, word in (("containers", "container"), ("initContainers", "init container")):
            for container in pod["spec"].get(group) or ():
                resources = container.setdefault("resources", {})
                for field, source in (("requests", "defaultRequest"), ("limits", "default")):
                    known = resources.get(field) or {}
                    missing = {key: value for key, value in (limit.get(source) or {}).items() if key not in known}
                    if missing:
                        resources[field] = known | missing
                        listed = ", ".join(sorted(missing))
                        defaulted.append(f"{listed} {field.removesuffix('s')} for {word} {container['name']}")
    if defaulted:
        annotations = pod["metadata"].setdefault("annotations", {})
        annotations[_SET_BY] = "LimitRanger plugin set: " + "; ".join(defaulted)


def check(store: ObjectStore, kind: ServedKind, namespace: str, obj: Object) -> None:
    """Raise `Failure` with everything in which a new pod, or a claim, is outside of the namespace's limits."""
    problems: list[str] = []
    limited = kind is PODS or kind.resource == "persistentvolumeclaims"
    for limit in limits_of(store, namespace) if limited else ():
        if kind is PODS:
            problems += _pod_problems(limit, obj["spec"])
        elif limit.get("type") == "PersistentVolumeClaim":
            asked = (obj["spec"].get("resources") or {}).get("requests") or {}
            problems += _least("PersistentVolumeClaim", limit, asked, {})
            problems += _most_requested("PersistentVolumeClaim", limit, asked)
    if problems:
        listed = list(dict.fromkeys(problems))
        text = listed[0] if len(listed) == 1 else "[" + ", ".join(listed) + "]"
        raise forbidden(kind, obj["metadata"]["name"], text)


def _pod_problems(limit: Object, spec: Object) -> list[str]:
    if limit.get("type") == "Container":
        problems: list[str] = []
        for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
            resources = container.get("resources") or {}
            asked, most = resources.get("requests") or {}, resources.get("limits") or {}
            problems += _all_problems("Container", limit, asked, most)
        return problems
    if limit.get("type") == "Pod":
        return _all_problems("Pod", limit, _total(spec, "requests"), _total(spec, "limits"))
    return []


def _total(spec: Object, which: str) -> Amounts:
    return {name: canonical(amount, binary=is_binary(name)) for name, amount in pod_amounts(spec, which).items()}


def _all_problems(what: str, limit: Object, asked: Amounts, most: Amounts) -> list[str]:
    return _least(what, limit, asked, most) + _most(what, limit, asked, most) + _ratio(what, limit, asked, most)


def _least(what: str, limit: Object, asked: Amounts, most: Amounts) -> list[str]:
    problems = []
    for name, least in sorted((limit.get("min") or {}).items()):
        rule = f"minimum {name} usage per {what} is {least}"
        if name not in asked:
            problems.append(f"{rule}. No request is specified")
        elif _value(asked[name]) < _value(least):
            problems.append(f"{rule}, but request is {asked[name]}")
        elif name in most and _value(most[name]) < _value(least):
            problems.append(f"{rule}, but limit is {most[name]}")
    return problems


def _most(what: str, limit: Object, asked: Amounts, most: Amounts) -> list[str]:
    problems = []
    for name, bound in sorted((limit.get("max") or {}).items()):
        rule = f"maximum {name} usage per {what} is {bound}"
        if name not in most:
            problems.append(f"{rule}. No limit is specified")
        elif _value(most[name]) > _value(bound):
            problems.append(f"{rule}, but limit is {most[name]}")
        elif name in asked and _value(asked[name]) > _value(bound):
            problems.append(f"{rule}, but request is {asked[name]}")
    return problems


def _most_requested(what: str, limit: Object, asked: Amounts) -> list[str]:
    problems = []
    for name, bound in sorted((limit.get("max") or {}).items()):
        rule = f"maximum {name} usage per {what} is {bound}"
        if name not in asked:
            problems.append(f"{rule}. No request is specified")
        elif _value(asked[name]) > _value(bound):
            problems.append(f"{rule}, but request is {asked[name]}")
    return problems


def _ratio(what: str, limit: Object, asked: Amounts, most: Amounts) -> list[str]:
    problems = []
    for name, bound in sorted((limit.get("maxLimitRequestRatio") or {}).items()):
        rule = f"{name} max limit to request ratio per {what} is {bound}"
        if not _value(asked.get(name, "0")):
            problems.append(f"{rule}, but no request is specified or request is 0")
        elif not _value(most.get(name, "0")):
            problems.append(f"{rule}, but no limit is specified or limit is 0")
        elif (ratio := _value(most[name]) / _value(asked[name])) > _value(bound):
            problems.append(f"{rule}, but provided ratio is {ratio:.6f}")
    return problems


def _value(text: str) -> Decimal:
    return parse_quantity(text)
