"""Indexes of the Services that may select a pod, and of the pods that a Service may select.

Both return candidates, which the caller still compares with the whole selector. The mirrors' changes keep them up to date.
"""

from collections.abc import Collection, Iterable, Mapping

from grid.sandbox.client import Object, key_of, labels_of, namespace_of

Pair = tuple[str, str, str]
"""Namespace, name and value of a label."""


def _pairs(obj: Object, labels: Mapping[str, str]) -> list[Pair]:
    namespace = namespace_of(obj)
    return [(namespace, name, value) for name, value in labels.items()]


class PodIndex:
    """Pods under each of their labels."""

    def __init__(self) -> None:
        self._by_pair: dict[Pair, dict[str, Object]] = {}
        self._pairs_of: dict[str, list[Pair]] = {}  # as indexed, because a deletion may come with other labels

    def changed(self, old: Object | None, new: Object | None) -> None:
        if old is not None:
            for pair in self._pairs_of.pop(key_of(old), ()):
                pods = self._by_pair[pair]
                pods.pop(key_of(old), None)
                if not pods:
                    del self._by_pair[pair]
        if new is not None:
            pairs = self._pairs_of[key_of(new)] = _pairs(new, labels_of(new))
            for pair in pairs:
                self._by_pair.setdefault(pair, {})[key_of(new)] = new

    def candidates(self, service: Object) -> Collection[Object]:
        """Return the smallest set of pods that one label of the selector leaves."""
        pairs = _pairs(service, service["spec"].get("selector") or {})
        return min((self._by_pair.get(pair, {}).values() for pair in pairs), key=len, default=())


class ServiceIndex:
    """Each Service under one label of its selector, the one with the fewest others: a selected pod has all of them."""

    def __init__(self) -> None:
        self._by_pair: dict[Pair, dict[str, Object]] = {}
        self._pair_of: dict[str, Pair] = {}

    def changed(self, old: Object | None, new: Object | None) -> None:
        if old is not None and (pair := self._pair_of.pop(key_of(old), None)) is not None:
            services = self._by_pair[pair]
            services.pop(key_of(old), None)
            if not services:
                del self._by_pair[pair]
        if new is not None and (pairs := _pairs(new, new["spec"].get("selector") or {})):
            pair = min(pairs, key=lambda pair: len(self._by_pair.get(pair, ())))
            self._by_pair.setdefault(pair, {})[key_of(new)] = new
            self._pair_of[key_of(new)] = pair

    def candidates(self, pod: Object) -> Iterable[Object]:
        for pair in _pairs(pod, labels_of(pod)):
            yield from self._by_pair.get(pair, {}).values()
