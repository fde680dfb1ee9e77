"""The sizes of a Deployment's ReplicaSets during a rollout: limits, proportions, order. All pure.

Each function mirrors a rule of the real deployment controller; ReplicaSets are raw objects, sizes are returned as
`(ReplicaSet, new size)` for the controller to write.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from grid.sandbox.client import Object, annotations_of, name_of, parse_time

REVISION = "deployment.kubernetes.io/revision"
REVISION_HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MAXIMUM = "deployment.kubernetes.io/max-replicas"
HASH_LABEL = "pod-template-hash"
OWN_ANNOTATIONS = frozenset(
    {
        REVISION,
        REVISION_HISTORY,
        DESIRED,
        MAXIMUM,
        "kubectl.kubernetes.io/last-applied-configuration",
        "deprecated.deployment.rollback.to",
    }
)
# The alphabet of Kubernetes' own safe names: no vowels, so no words.
_SAFE = "bcdfghjklmnpqrstvwxz2456789"
_HASH_LENGTH = 10

Size = tuple[Object, int]


def spec_replicas(replica_set: Mapping[str, Any]) -> int:
    return int(replica_set["spec"].get("replicas", 1))


def status_number(obj: Mapping[str, Any], name: str) -> int:
    return int((obj.get("status") or {}).get(name) or 0)


def total(sets: Sequence[Object]) -> int:
    return sum(spec_replicas(item) for item in sets)


def available(sets: Sequence[Object]) -> int:
    return sum(status_number(item, "availableReplicas") for item in sets)


def template_hash(template: Mapping[str, Any], collisions: int) -> str:
    """Return a hash of the template in Kubernetes' alphabet: equal templates have equal hashes. Only this controller reads it."""
    text = msgspec.json.encode([_comparable(template), collisions], order="deterministic")
    digest = int.from_bytes(hashlib.sha256(text).digest()[:8], "big")
    letters = []
    for _ in range(_HASH_LENGTH):
        digest, index = divmod(digest, len(_SAFE))
        letters.append(_SAFE[index])
    return "".join(letters)


def same_template(template: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return _comparable(template) == _comparable(other)


def _comparable(template: Mapping[str, Any]) -> object:
    """Return the template without the hash label and without empty values, which servers may write or leave out."""
    meta = dict(template.get("metadata") or {})
    meta["labels"] = {key: value for key, value in (meta.get("labels") or {}).items() if key != HASH_LABEL}
    return _without_empty({**template, "metadata": meta})


def _without_empty(value: object) -> object:
    if isinstance(value, Mapping):
        cleaned = {key: _without_empty(item) for key, item in value.items()}
        return {key: item for key, item in cleaned.items() if item not in (None, {}, [])}
    if isinstance(value, list):
        return [_without_empty(item) for item in value]
    return value


def by_age(sets: Sequence[Object]) -> list[Object]:
    return sorted(sets, key=lambda item: (parse_time(item["metadata"].get("creationTimestamp")), name_of(item)))


def split_sets(deployment: Object, sets: Sequence[Object]) -> tuple[Object | None, list[Object]]:
    """Return the oldest set with the Deployment's present template (or None), and all others, oldest first."""
    ordered = by_age(sets)
    template = deployment["spec"]["template"]
    newest = next((item for item in ordered if same_template(item["spec"]["template"], template)), None)
    return newest, [item for item in ordered if item is not newest]


def is_rolling(deployment: Mapping[str, Any]) -> bool:
    kind: str = (deployment["spec"].get("strategy") or {}).get("type", "RollingUpdate")
    return kind == "RollingUpdate"


def limits(deployment: Mapping[str, Any]) -> tuple[int, int]:
    """Return how many pods above, and how many available pods below the wanted number a rolling update may have."""
    if not is_rolling(deployment):
        return 0, 0
    rolling = (deployment["spec"].get("strategy") or {}).get("rollingUpdate") or {}
    wanted = spec_replicas(deployment)
    surge = _share(rolling.get("maxSurge", "25%"), wanted, up=True)
    unavailable = _share(rolling.get("maxUnavailable", "25%"), wanted, up=False)
    if surge == 0 and unavailable == 0:
        # With both zero the rollout would never move; validation refuses that, but rounding can produce it.
        unavailable = 1
    return surge, min(unavailable, wanted)


def _share(value: int | str, whole: int, *, up: bool) -> int:
    if isinstance(value, int):
        return value
    hundredths = int(value.removesuffix("%")) * whole
    return -(-hundredths // 100) if up else hundredths // 100


def new_set_size(deployment: Object, newest: Object | None, sets: Sequence[Object]) -> int:
    """Return how large the new set may be now; `sets` are all sets, the new one included."""
    wanted = spec_replicas(deployment)
    if not is_rolling(deployment):
        return wanted
    surge, _ = limits(deployment)
    present = spec_replicas(newest) if newest else 0
    room = wanted + surge - total(sets)
    return present if room <= 0 else present + min(room, wanted - present)


def old_set_sizes(deployment: Object, newest: Object, old: Sequence[Object]) -> list[Size]:
    """Return how far the old sets may shrink now: unhealthy pods first, then as many as keep enough pods available."""
    _, unavailable = limits(deployment)
    least = spec_replicas(deployment) - unavailable
    everything = [*old, newest]
    new_unavailable = spec_replicas(newest) - status_number(newest, "availableReplicas")
    budget = total(everything) - least - new_unavailable
    if budget <= 0 or not total(old):
        return []
    sizes = {name_of(item): spec_replicas(item) for item in old}
    ordered = by_age(old)
    for item in ordered:
        unhealthy = sizes[name_of(item)] - status_number(item, "availableReplicas")
        gone = max(0, min(budget, unhealthy))
        sizes[name_of(item)] -= gone
        budget -= gone
    spare = available(everything) - least
    for item in ordered:
        gone = max(0, min(spare, sizes[name_of(item)]))
        sizes[name_of(item)] -= gone
        spare -= gone
    return [(item, sizes[name_of(item)]) for item in ordered if sizes[name_of(item)] != spec_replicas(item)]


def is_scaling(deployment: Object, sets: Sequence[Object]) -> bool:
    """Return True when the wanted number changed since the sets were last sized."""
    wanted = str(spec_replicas(deployment))
    return any(spec_replicas(item) > 0 and annotations_of(item).get(DESIRED, wanted) != wanted for item in sets)


def scaled_sizes(deployment: Object, newest: Object | None, old: Sequence[Object]) -> list[Size]:
    """Return the sizes after the wanted number changed: proportional during a rollout, so that its risk stays spread."""
    wanted = spec_replicas(deployment)
    everything = [*old, *([newest] if newest else [])]
    active = [item for item in everything if spec_replicas(item) > 0]
    if len(active) <= 1:
        single = active[0] if active else newest or (by_age(old)[-1] if old else None)
        return [(single, wanted)] if single is not None else []
    if newest is not None and _is_saturated(deployment, newest):
        return [(item, 0) for item in active if item is not newest]
    if not is_rolling(deployment):
        return []
    return _proportional(deployment, active)


def _is_saturated(deployment: Object, newest: Object) -> bool:
    wanted = spec_replicas(deployment)
    return (
        annotations_of(newest).get(DESIRED) == str(wanted)
        and spec_replicas(newest) == wanted
        and status_number(newest, "availableReplicas") == wanted
    )


def _proportional(deployment: Object, active: list[Object]) -> list[Size]:
    wanted = spec_replicas(deployment)
    surge, _ = limits(deployment)
    to_add = (wanted + surge if wanted > 0 else 0) - total(active)
    # The largest set first; among equals the newest grows first and the oldest shrinks first.
    ordered = by_age(active) if to_add <= 0 else by_age(active)[::-1]
    ordered.sort(key=spec_replicas, reverse=True)
    sizes = []
    added = 0
    for item in ordered:
        part = _proportion(deployment, item, to_add, added)
        added += part
        sizes.append(spec_replicas(item) + part)
    if sizes and to_add:
        sizes[0] = max(0, sizes[0] + to_add - added)
    return list(zip(ordered, sizes, strict=True))


def _proportion(deployment: Object, item: Object, to_add: int, added: int) -> int:
    present = spec_replicas(item)
    if not present or not to_add or to_add == added:
        return 0
    wanted = spec_replicas(deployment)
    allowed = to_add - added
    fraction = -present
    if wanted:
        surge, _ = limits(deployment)
        before = int(annotations_of(item).get(MAXIMUM) or status_number(deployment, "replicas") or present)
        fraction = math.floor(present * (wanted + surge) / before + 0.5) - present
    return min(fraction, allowed) if to_add > 0 else max(fraction, allowed)


def surplus_history(deployment: Object, old: Sequence[Object]) -> list[Object]:
    """Return the unneeded old sets beyond the revision history limit, by revision."""
    limit = deployment["spec"].get("revisionHistoryLimit", 10)
    done = [
        item
        for item in old
        if not spec_replicas(item)
        and not status_number(item, "replicas")
        and status_number(item, "observedGeneration") >= item["metadata"].get("generation", 0)
    ]
    surplus = max(0, len(old) - limit)
    return sorted(done, key=lambda item: (revision_of(item), name_of(item)))[:surplus]


def revision_of(obj: Mapping[str, Any]) -> int:
    try:
        return int(annotations_of(obj).get(REVISION, "0"))
    except ValueError:
        return 0


def set_annotations(deployment: Object, newest: Object | None, old: Sequence[Object]) -> dict[str, str]:
    """Return the annotations of the new set: the Deployment's, its revision, and the revisions it had before a roll-back."""
    mine = {key: value for key, value in annotations_of(deployment).items() if key not in OWN_ANNOTATIONS}
    revision = max((revision_of(item) for item in old), default=0) + 1
    result = {**(annotations_of(newest) if newest else {}), **mine}
    before = revision_of(newest) if newest else 0
    if before < revision:
        result[REVISION] = str(revision)
        if before:
            history = result.get(REVISION_HISTORY, "")
            result[REVISION_HISTORY] = f"{history},{before}" if history else str(before)
    return result | size_annotations(deployment)


def size_annotations(deployment: Object) -> dict[str, str]:
    wanted = spec_replicas(deployment)
    return {DESIRED: str(wanted), MAXIMUM: str(wanted + limits(deployment)[0])}
