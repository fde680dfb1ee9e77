"""Validation of PriorityClasses."""

from grid.sandbox.apiserver.kinds import Object
from grid.sandbox.apiserver.priorities import SYSTEM_CLASSES
from grid.sandbox.apiserver.status import StatusCause, prohibited, unsupported, wrong

_HIGHEST = 1000000000
_POLICIES = ("Never", "PreemptLowerPriority")


def check_priority_class(obj: Object) -> list[StatusCause]:
    name, value = obj["metadata"]["name"], obj.get("value", 0)
    causes: list[StatusCause] = []
    if name.startswith("system-"):
        known = SYSTEM_CLASSES.get(name)
        why = f"{name} is not a known system priority class" if known is None else ""
        if known is not None and value != known[0]:
            why = f"value of {name} PriorityClass must be {known[0]}"
        if why:
            rule = f"priority class names with 'system-' prefix are reserved for system use only. error: {why}"
            causes.append(prohibited("metadata.name", rule))
    elif value > _HIGHEST:
        causes.append(prohibited("value", f"maximum allowed value of a user defined priority is {_HIGHEST}"))
    if obj.get("preemptionPolicy") not in _POLICIES:
        causes.append(unsupported("preemptionPolicy", obj.get("preemptionPolicy"), _POLICIES))
    return causes


def check_priority_class_update(new: Object, old: Object) -> list[StatusCause]:
    causes: list[StatusCause] = []
    if new.get("value", 0) != old.get("value", 0):
        causes.append(prohibited("value", "may not be changed in an update."))
    if new.get("preemptionPolicy") != old.get("preemptionPolicy"):
        causes.append(wrong("preemptionPolicy", new.get("preemptionPolicy"), "field is immutable"))
    return causes
