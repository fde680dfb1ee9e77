"""The web page that a job's program serves while it runs: who is offered it, and when."""

import pytest

from grid.models import Execution, State, User
from grid.runtime import Runtime
from tests.conftest import People
from tests.executions.executing import make_running
from tests.shell.browsing import client_of
from tests.support.cluster import FakeCluster
from tests.support.frozen import write_frozen

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def job(people: People, cluster: FakeCluster, runtime: Runtime) -> Execution:
    return make_running(people, cluster, runtime, kind="job")


def offers(job: Execution, person: User) -> bool:
    page = client_of(person).get(f"/executions/{job.pk}/").content.decode()
    return "Open its page" in page


def test_job_port_page_is_offered_only_to_its_owner(people: People, job: Execution) -> None:
    assert not offers(job, people.owner)
    write_frozen(job, spec={**job.spec, "port": 6006})
    assert [offers(job, person) for person in (people.owner, people.teammate, people.operator, people.admin)] == [
        True, False, False, False,
    ]  # fmt: skip
    write_frozen(job, state=State.FINISHING)
    assert not offers(job, people.owner), "it has ended"
