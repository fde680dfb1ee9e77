"""Launches and links at which PostgreSQL, or a queue that an operator changed, once ended in an error."""

import pytest
from django.utils import timezone

from grid.configuration import GLOBAL_QUEUE_LIMIT, MAXIMUM_EXECUTIONS_PER_USER
from grid.models import Execution, HardwareTier, State
from grid.queue import ordering
from grid.runtime import Runtime
from tests.conftest import People, client_of
from tests.executions.executing import FORM, configure, make_execution, offer_clusters

pytestmark = pytest.mark.django_db(transaction=True)


def test_form_opens_while_queue_is_full_and_locks_nobody(people: People, runtime: Runtime) -> None:
    project = offer_clusters(people)
    HardwareTier.objects.filter(pk="small").update(maximum_simultaneous=1)
    configure(GLOBAL_QUEUE_LIMIT.key, 1)
    for number in range(3):
        make_execution(people.teammate, project, state=State.QUEUED, title=f"waiting {number}")
    assert client_of(people.owner).get("/launch/").status_code == 200


def test_form_of_a_held_launch_can_be_shown_again(people: People, runtime: Runtime) -> None:
    offer_clusters(people)
    configure(MAXIMUM_EXECUTIONS_PER_USER.key, 1)
    client = client_of(people.owner)
    assert client.post("/launch/", FORM).status_code == 302
    ordering.hold(Execution.objects.get().pk, by=people.operator, reason="maintenance", now=timezone.now())
    assert client.post("/launch/estimate/", FORM).status_code == 200


def test_nul_in_a_link_to_the_form_is_ignored(people: People, runtime: Runtime) -> None:
    offer_clusters(people)
    for field in ("project", "tier", "environment", "title", "head_tier", "kind"):
        assert client_of(people.owner).get("/launch/", {field: "a\0b"}).status_code == 200, field


def test_a_nul_in_an_address_is_nobody_s_name(people: People, runtime: Runtime) -> None:
    for path in ("/knowledge/a%00b/", "/knowledge/a%00b/found/", "/tiers/a%00b/archive/", "/environments/a%00b/"):
        assert client_of(people.admin).get(path).status_code == 404, path
