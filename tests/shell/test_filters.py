"""Filters of tables: each condition is a chip that can be dropped alone, with and without JavaScript."""

import pytest

from dashboard.nodes.viewmodels.infrastructure import InfrastructureView, node_chips
from grid.runtime import Runtime
from tests.conftest import People, client_of


def test_node_chips_drop_a_condition_and_keep_order() -> None:
    view = InfrastructureView.parse({"pool": "gpu", "text": "a b", "state": "removable", "sort": "-cpu", "page": "3"})
    chips = {chip.words: chip.without for chip in node_chips(view)}
    assert chips == {
        "“a b”": "?pool=gpu&state=removable&sort=-cpu",
        "Pool: gpu": "?text=a+b&state=removable&sort=-cpu",
        "State: Can be removed": "?pool=gpu&text=a+b&sort=-cpu",
    }
    assert view.cleared == "?sort=-cpu"
    assert node_chips(InfrastructureView()) == ()


@pytest.mark.parametrize(
    ("path", "chips", "pushed"),
    [
        ("/people/?text=ali&role=&state=active", ["“ali”", "State: Active"], "/people/?text=ali&state=active"),
        ("/executions/?show=ended&text=x&kind=job", ["“x”", "Type: Job"], "/executions/?show=ended&text=x&kind=job"),
        ("/infrastructure/?text=x&pool=&state=", ["“x”"], "/infrastructure/?text=x"),
    ],
)
def test_filter_shows_conditions_and_address_without_empty_ones(
    people: People, runtime: Runtime, path: str, chips: list[str], pushed: str
) -> None:
    answer = client_of(people.admin).get(path)
    page = answer.content.decode()
    assert [part.split("</a>")[0] for part in page.split("Remove </span>")[1:]] == chips
    assert answer["HX-Push-Url"] == pushed
    assert 'hx-swap="outerMorph"' in page, "the filter is instant with JavaScript"
    assert 'class="without-script">' in page, "and has a button without it"
