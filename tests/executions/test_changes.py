"""The least that has to be sent: applied to what a browser has, the changes give what it should have."""

from collections.abc import Sequence

from hypothesis import given, strategies as st

from dashboard.shell.viewmodels.live import Fragment, PageUpdate, Shown, changes, everything

REGION = "rows"


def row(name: str, value: int = 0) -> Fragment:
    return Fragment(name, "row.html", value, region=REGION)


def shown(*rows: Fragment, singles: Sequence[Fragment] = ()) -> Shown:
    return Shown.of([*rows, *singles], [REGION])


def apply(children: Sequence[Fragment], updates: Sequence[PageUpdate]) -> list[Fragment]:
    """What the browser does. Like htmx it looks up all targets before the first change is made, so each must be there already."""
    page = list(children)
    there_before = {child.id for child in page} | {REGION}
    for change in updates:
        assert change.target in there_before
        ids = [child.id for child in page]
        if change.kind == "fill":
            page = list(change.fragments)
        elif change.kind == "prepend":
            page[:0] = change.fragments
        elif change.kind == "after":
            place = ids.index(change.target) + 1
            page[place:place] = change.fragments
        elif change.kind == "remove":
            del page[ids.index(change.target)]
        else:
            page[ids.index(change.target)] = change.fragments[0]
    return page


rows = st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 2)), unique_by=lambda pair: pair[0]).map(
    lambda pairs: [row(name, value) for name, value in pairs]
)


@given(old=rows, new=rows)
def test_any_page_becomes_any_other(old: list[Fragment], new: list[Fragment]) -> None:
    assert apply(old, changes(shown(*old), shown(*new))) == new


@given(old=rows, new=rows)
def test_the_full_state_is_right_whatever_the_browser_has(old: list[Fragment], new: list[Fragment]) -> None:
    assert apply(old, everything(shown(*new))) == new


@given(page=rows)
def test_unchanged_page_sends_nothing(page: list[Fragment]) -> None:
    assert changes(shown(*page), shown(*page)) == []


def test_changed_row_of_many_is_sent_alone() -> None:
    old = [row(f"r{place}") for place in range(500)]
    new = [*old[:250], row("r250", 1), *old[251:]]
    assert changes(shown(*old), shown(*new)) == [PageUpdate("replace", "r250", (row("r250", 1),))]
