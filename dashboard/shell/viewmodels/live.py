"""The fragments of live pages, and the smallest updates that bring a browser up to date; pure, used by every websocket. A page is a
sequence of fragments. A fragment either stands alone and is replaced by its id, or belongs to a region, a container whose children are
ordered. `changes` compares what a browser has with what it should have."""

import string
from bisect import bisect_left
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Literal

import msgspec


class ViewModel(msgspec.Struct, frozen=True, gc=False):
    """What a template shows, of a kind that pages have hundreds of."""

    def __getitem__(self, name: str) -> object:
        """Return an attribute: Django's templates ask for an item first, and its absence would take longer than all else of the lookup."""
        return getattr(self, name)


class Fragment(msgspec.Struct, frozen=True, gc=False):
    """One HTML element with a stable id: `template` renders it from `context`, a frozen view-model (`x` in the template). `region` is the
    id of the container whose children are ordered; "" for a single element."""

    id: str
    template: str
    context: Hashable
    region: str = ""


@dataclass(frozen=True, slots=True)
class PageUpdate:
    """One operation on the page. `target` is the id of the element or region, `fragments` its new content. `replace` morphs the element,
    `fill` replaces all children of a region, `prepend` inserts at a region's start, `after` inserts behind an element, `remove` takes an
    element away."""

    kind: Literal["replace", "fill", "prepend", "after", "remove"]
    target: str
    fragments: tuple[Fragment, ...] = ()


@dataclass(frozen=True, slots=True)
class Shown:
    """The fragments that a browser shows: single ones by id, and the ordered ones of each region."""

    singles: Mapping[str, Fragment]
    regions: Mapping[str, tuple[Fragment, ...]]

    @classmethod
    def of(cls, fragments: Iterable[Fragment], regions: Iterable[str] = ()) -> "Shown":
        """Group the fragments by region; `regions` names the page's regions, so that empty ones are included."""
        singles: dict[str, Fragment] = {}
        ordered: dict[str, list[Fragment]] = {region: [] for region in sorted(regions)}
        for region, some in groupby(fragments, key=attrgetter("region")):
            if region:
                ordered.setdefault(region, []).extend(some)
            else:
                singles.update((fragment.id, fragment) for fragment in some)
        return cls(singles=singles, regions={region: tuple(children) for region, children in ordered.items()})

    def with_single(self, fragment: Fragment) -> "Shown":
        return Shown({**self.singles, fragment.id: fragment}, self.regions)


def everything(new: Shown) -> list[PageUpdate]:
    """Return updates that set the full state, whatever the browser shows."""
    filled = [PageUpdate("fill", region, children) for region, children in new.regions.items()]
    return filled + [PageUpdate("replace", single.id, (single,)) for single in new.singles.values()]


def changes(old: Shown, new: Shown) -> list[PageUpdate]:
    """Return the updates from `old` to `new`, ordered so that each target exists when it is used. In each region, removals come first, then
    insertions after elements that stay, then replacements in place."""
    updates: list[PageUpdate] = []
    for region, children in new.regions.items():
        updates += _region_changes(region, old.regions.get(region, ()), children)
    updates += [PageUpdate("fill", region) for region in old.regions.keys() - new.regions.keys()]
    changed = (single for single in new.singles.values() if old.singles.get(single.id) != single)
    return updates + [PageUpdate("replace", single.id, (single,)) for single in changed]


def _region_changes(region: str, old: Sequence[Fragment], new: Sequence[Fragment]) -> list[PageUpdate]:
    if not old or not new:
        return [PageUpdate("fill", region, tuple(new))] if old or new else []
    # Nearly always none comes, goes or moves. Else the first and the last rows that stay need no thought.
    if len(old) == len(new):
        others = [(was, now) for was, now in zip(old, new, strict=True) if was is not now]
        if all(was.id == now.id for was, now in others):
            return [PageUpdate("replace", now.id, (now,)) for was, now in others if was != now]
    head = _same_ids(zip(old, new, strict=False))
    tail = _same_ids(zip(reversed(old[head:]), reversed(new[head:]), strict=False))
    moves = _moves(region, old[head - 1].id if head else "", old[head : len(old) - tail], new[head : len(new) - tail])
    staying = [*zip(old[:head], new, strict=False), *zip(old[len(old) - tail :], new[len(new) - tail :], strict=True)]
    return moves + [PageUpdate("replace", now.id, (now,)) for was, now in staying if was is not now and was != now]


def _same_ids(pairs: Iterable[tuple[Fragment, Fragment]]) -> int:
    count = 0
    for was, now in pairs:
        if was is not now and was.id != now.id:
            break
        count += 1
    return count


def _moves(region: str, anchor: str, old: Sequence[Fragment], new: Sequence[Fragment]) -> list[PageUpdate]:
    """Return the updates of the part of a region that begins after the element `anchor`, or at the region's start if it is ""."""
    before = {fragment.id: position for position, fragment in enumerate(old)}
    staying = _longest_ordered([fragment.id for fragment in new if fragment.id in before], before)
    removals = [PageUpdate("remove", fragment.id) for fragment in old if fragment.id not in staying]
    insertions: list[PageUpdate] = []
    replacements: list[PageUpdate] = []
    run = list[Fragment]()
    for fragment in new:
        if fragment.id not in staying:
            run.append(fragment)
            continue
        insertions += _insertion(region, anchor, run)
        anchor, run = fragment.id, []
        if old[before[fragment.id]] != fragment:
            replacements.append(PageUpdate("replace", fragment.id, (fragment,)))
    return removals + insertions + _insertion(region, anchor, run) + replacements


def _insertion(region: str, anchor: str, run: Sequence[Fragment]) -> list[PageUpdate]:
    if not run:
        return []
    return [PageUpdate("after", anchor, tuple(run)) if anchor else PageUpdate("prepend", region, tuple(run))]


def _longest_ordered(ids: Sequence[str], position: Mapping[str, int]) -> frozenset[str]:
    """Return the largest set of ids that keep their relative order, found by patience sorting; only the others have to move."""
    tails: list[int] = []
    tail_ids: list[str] = []
    previous: dict[str, str] = {}
    for name in ids:
        place = bisect_left(tails, position[name])
        if place:
            previous[name] = tail_ids[place - 1]
        tails[place : place + 1] = [position[name]]
        tail_ids[place : place + 1] = [name]
    kept: set[str] = set()
    name = tail_ids[-1] if tail_ids else ""
    while name:
        kept.add(name)
        name = previous.get(name, "")
    return frozenset(kept)


_ALLOWED = frozenset(f"{string.ascii_letters}{string.digits}_.-")


def element_id(kind: str, *names: str) -> str:
    """Return the kind and names joined by dashes, as an id that is safe in HTML and in a selector: `node-worker-1`. Any character but
    letters, digits, dots, dashes and underscores is written as its code between colons, `a/b` as `a:2f:b`, so that two names never become
    the same text."""
    return "-".join([kind, *map(_escaped, names)])


def namespaced(namespace: str, name: str) -> str:
    """Return one text for an object of a namespace. A namespace's name has no dot, so two objects never have the same."""
    return f"{namespace}.{name}"


def _escaped(name: str) -> str:
    if _ALLOWED.issuperset(name):
        return name
    return "".join(character if character in _ALLOWED else f":{ord(character):x}:" for character in name)
