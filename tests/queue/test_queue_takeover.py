"""The page on which operators take over the queue and give it back, and what the queue says meanwhile."""

import pytest

from grid.models import QueueTakeover
from tests.conftest import People
from tests.shell.browsing import client_of

PAGE = "/queue/take-over/"
pytestmark = pytest.mark.usefixtures("runtime")


def test_takeover_names_its_operator_and_another_gives_it_back(people: People) -> None:
    client = client_of(people.operator)
    assert f'href="{PAGE}"' in client.get("/queue/").text
    assert client.post(PAGE, {"do": "take", "minutes": "60", "reason": ""}).status_code == 422
    taken = client.post(PAGE, {"do": "take", "minutes": "60", "reason": "A <node> burns"}, follow=True)
    assert "You decide what starts, until" in taken.text
    other = client_of(people.admin)
    page = other.get(PAGE).text
    assert people.operator.username in page and "A &lt;node&gt; burns" in page
    late = other.post(PAGE, {"do": "take", "minutes": "15", "reason": "Mine"})
    assert late.status_code == 422 and "has taken over the queue until" in late.text
    assert "The queue goes by turn again." in other.post(PAGE, {"do": "back"}, follow=True).text
    assert other.post(PAGE, {"do": "back"}).status_code == 422
    assert QueueTakeover.objects.count() == 1
    assert PAGE not in client_of(people.owner).get("/queue/").text
