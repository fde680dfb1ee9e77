"""The effect of DELETE on an object: removed at once, marked as terminating, or unchanged. Pure functions.

Pods end gracefully: a scheduled pod gets a deadline, and its kubelet removes it with a grace period of zero.
Everything else is removed at once unless a finalizer holds it. `propagationPolicy` becomes a finalizer, which the garbage
collector works off.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from grid.sandbox.apiserver.kinds import NAMESPACES, PODS, Object, ServedKind
from grid.sandbox.apiserver.pods import is_finished, is_scheduled
from grid.sandbox.apiserver.status import Failure, details_of, invalid_options, prohibited, unsupported, wrong
from grid.sandbox.apiserver.store import Record

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
_POLICY_FINALIZERS = {"Foreground": FOREGROUND, "Orphan": ORPHAN}


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    grace_seconds: int | None = None
    propagation: str = ""  # "", "Background", "Foreground", "Orphan"
    uid: str = ""
    resource_version: str = ""
    dry_run: bool = False

    @classmethod
    def parse(cls, body: Object, query: Mapping[str, str]) -> "DeleteOptions":
        """Read the options from the body, or from the query where the body does not set them."""

        def given(name: str) -> Any:
            return body[name] if body.get(name) is not None else query.get(name)

        policy, orphan = given("propagationPolicy"), given("orphanDependents")
        if policy and orphan is not None:
            problem = wrong("propagationPolicy", policy, "orphanDependents and deletionPropagation cannot be both set")
            raise invalid_options("DeleteOptions", problem)
        if policy and policy not in ("Background", "Foreground", "Orphan"):
            allowed = ("Foreground", "Background", "Orphan", "nil")
            raise invalid_options("DeleteOptions", unsupported("propagationPolicy", policy, allowed))
        if orphan is not None and orphan not in (False, "false"):
            policy = "Orphan"
        grace = given("gracePeriodSeconds")
        preconditions = body.get("preconditions") or {}
        return cls(
            grace_seconds=int(grace) if grace is not None else None,
            propagation=policy or "",
            uid=preconditions.get("uid") or "",
            resource_version=preconditions.get("resourceVersion") or "",
            dry_run=bool(body.get("dryRun")) or "dryRun" in query,
        )


@dataclass(frozen=True, slots=True)
class Marked:
    """The object stays, terminating."""

    obj: Object


@dataclass(frozen=True, slots=True)
class Removed:
    """The object is removed now."""

    obj: Object


def decide_deletion(kind: ServedKind, record: Record, options: DeleteOptions, now: datetime) -> Marked | Removed | None:
    """Return what to do, or None for nothing: the object is terminating already and no sooner deadline was asked for."""
    _check_preconditions(kind, record, options)
    obj = record.fresh()
    metadata = obj["metadata"]
    if kind is NAMESPACES:
        return _mark_namespace(obj, now)
    grace = _grace(kind, obj, options)
    finalizers = metadata.get("finalizers") or []
    finalizers = _with_policy(finalizers, options.propagation)
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)
    terminating = "deletionTimestamp" in metadata
    if terminating and grace >= metadata.get("deletionGracePeriodSeconds", 0) and (grace or finalizers):
        return Marked(obj) if finalizers != (record.obj["metadata"].get("finalizers") or []) else None
    metadata["deletionTimestamp"] = (now + timedelta(seconds=grace)).strftime("%Y-%m-%dT%H:%M:%SZ")
    metadata["deletionGracePeriodSeconds"] = grace
    if not terminating and kind.counts_generations:
        metadata["generation"] = metadata.get("generation", 0) + 1
    return Marked(obj) if grace or finalizers else Removed(obj)


def _grace(kind: ServedKind, obj: Object, options: DeleteOptions) -> int:
    if kind is not PODS or not is_scheduled(obj) or is_finished(obj):
        return 0
    grace = options.grace_seconds
    if grace is None:
        grace = obj["spec"].get("terminationGracePeriodSeconds", 30)
    return 1 if grace < 0 else int(grace)


def _with_policy(finalizers: list[str], policy: str) -> list[str]:
    if not policy:
        return finalizers
    kept = [each for each in finalizers if each not in (FOREGROUND, ORPHAN)]
    return [*kept, _POLICY_FINALIZERS[policy]] if policy in _POLICY_FINALIZERS else kept


def _mark_namespace(obj: Object, now: datetime) -> Marked | None:
    if "deletionTimestamp" in obj["metadata"]:
        return None
    obj["metadata"]["deletionTimestamp"] = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    obj["status"] = {**obj.get("status", {}), "phase": "Terminating"}
    return Marked(obj)


def may_go(kind: ServedKind, obj: Object) -> bool:
    """Return True when nothing holds a terminating object any more."""
    metadata = obj["metadata"]
    if "deletionTimestamp" not in metadata or metadata.get("finalizers"):
        return False
    if kind is NAMESPACES:
        return not obj["spec"].get("finalizers")
    return not metadata.get("deletionGracePeriodSeconds")


def _check_preconditions(kind: ServedKind, record: Record, options: DeleteOptions) -> None:
    metadata = record.obj["metadata"]
    for name, asked, actual, hint in (
        ("UID", options.uid, metadata["uid"], "deleted and then recreated"),
        ("ResourceVersion", options.resource_version, str(record.version), "modified"),
    ):
        if asked and asked != actual:
            message = (
                f'Operation cannot be fulfilled on {kind.kind} "{metadata["name"]}": the {name} in the precondition ({asked}) '
                f"does not match the {name} in record ({actual}). The object might have been {hint}"
            )
            raise Failure(409, "Conflict", message, {**details_of(kind, metadata["name"]), "kind": kind.kind})


def new_finalizers_problem(new: Object, old: Object) -> list[Any]:
    """Return a problem if a terminating object gains finalizers; it may only lose them."""
    if "deletionTimestamp" not in old["metadata"]:
        return []
    before = old["metadata"].get("finalizers") or []
    added = [each for each in new["metadata"].get("finalizers") or [] if each not in before]
    if not added:
        return []
    listed = ", ".join(f'"{each}"' for each in added)
    text = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{listed}}}"
    return [prohibited("metadata.finalizers", text)]
