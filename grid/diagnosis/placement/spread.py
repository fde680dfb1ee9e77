"""An even spread of pods over zones, nodes or other values of a label: the numbers that the scheduler compares, and their words; pure.

Source: the plugin PodTopologySpread of Kubernetes (pkg/scheduler/framework/plugins/podtopologyspread/filtering.go). It counts cordoned
and tainted nodes too, unless `nodeTaintsPolicy` is Honor, and nodes that the pod does not select when `nodeAffinityPolicy` is Ignore.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from grid.core.translation import gettext as _, ngettext
from grid.core.wording import listed, listed_up_to

HOSTNAME = "kubernetes.io/hostname"
_AREAS = {
    HOSTNAME: (_("node"), _("nodes")),
    "topology.kubernetes.io/zone": (_("zone"), _("zones")),
    "topology.kubernetes.io/region": (_("region"), _("regions")),
}
_NAMED = 2


def area(key: str) -> str:
    """Return what the nodes with one value of this label are together: "zone", "node", "rack"."""
    return _AREAS[key][0] if key in _AREAS else key.rpartition("/")[2]


def areas(key: str) -> str:
    return _AREAS[key][1] if key in _AREAS else _("values of {label}", label=area(key))


@dataclass(frozen=True)
class Spread:
    """A constraint with what it counts: matching pods by value of its label, 0 included. `counts_itself` says that the pod is like them."""

    key: str
    counts: Mapping[str, int]
    max_skew: int
    min_domains: int
    counts_itself: bool

    @property
    def is_short_of_domains(self) -> bool:
        """With fewer domains than `minDomains`, the emptiest one counts as if it had none."""
        return len(self.counts) < self.min_domains

    @cached_property
    def fewest(self) -> int:
        return 0 if self.is_short_of_domains else min(self.counts.values(), default=0)

    def is_broken_in(self, value: str) -> bool:
        return self.counts.get(value, 0) + self.counts_itself - self.fewest > self.max_skew

    @cached_property
    def emptiest(self) -> tuple[str, ...]:
        """The domains in which the pod would have to be first; none when more domains have to come."""
        if self.is_short_of_domains:
            return ()
        return tuple(sorted(value for value, count in self.counts.items() if count == self.fewest))

    def words(self, values: Iterable[str]) -> str:
        """Return why the pod may not be in these domains: "zone a has 1, zone c has 0; they may differ by 1"."""
        return self._compared(self._have(sorted(set(values))))

    def words_of_node(self, value: str) -> str:
        """Return the same of a node in this domain, alike for nodes that have the same number each."""
        if self.key != HOSTNAME:
            return self.words([value])
        return self._compared([_("it has {number:,}", number=self.counts.get(value, 0))])

    def _compared(self, has: list[str]) -> str:
        if self.is_short_of_domains:
            words = _("{has}; none may have more than {most:,} until there are {wanted:,} {areas} (now {present:,})")
            return words.format(
                has=", ".join(has),
                most=self.max_skew,
                wanted=self.min_domains,
                areas=areas(self.key),
                present=len(self.counts),
            )
        parts = [*has, *self._have(self.emptiest)]
        return _("{has}; they may differ by {most:,}", has=", ".join(parts), most=self.max_skew)

    def _have(self, values: Iterable[str]) -> list[str]:
        """Return how many each number of domains has, the largest number first."""
        by_number: dict[int, list[str]] = {}
        for value in values:
            by_number.setdefault(self.counts.get(value, 0), []).append(value)
        return [
            ngettext(
                "{area} {names} has {number:,}",
                "{area} {names} have {number:,} each",
                len(names),
                area=area(self.key) if len(names) == 1 or self.key not in _AREAS else areas(self.key),
                names=listed_up_to(_NAMED, names),
                number=number,
            )
            for number, names in sorted(by_number.items(), reverse=True)
        ]


def where_it_lacks(key: str, value: str, states: Mapping[str, int]) -> str:
    """Return what is the matter with the nodes of the domain that should be next, by their states with numbers."""
    total = sum(states.values())
    if key == HOSTNAME:
        return _("node {name} is {state}", name=value, state=listed(states))
    place = f"{area(key)} {value}"
    if len(states) > 1:
        parts = [
            ngettext("{number:,} is {state}", "{number:,} are {state}", number, number=number, state=state)
            for state, number in states.items()
        ]
        return _("of the {total:,} nodes in {place}, {parts}", total=total, place=place, parts=listed(parts))
    return ngettext(
        "{place}'s only node is {state}",
        "{place}'s {total:,} nodes are {state}",
        total,
        place=place,
        total=total,
        state=listed(states),
    )
