"""The page on which operators have more logged for an hour, about a component or an execution, and end it."""

from datetime import timedelta

import pytest
from django.utils import timezone

from grid.logs import verboselogging
from grid.models import AuditEntry, Execution, State, VerboseLogging
from tests.conftest import People
from tests.executions.executing import make_execution, make_project
from tests.shell.browsing import client_of, execution_page

PAGE = "/verbose-logs/"
pytestmark = pytest.mark.usefixtures("runtime")


@pytest.fixture
def execution(people: People) -> Execution:
    return make_execution(people.owner, make_project(people.owner), state=State.RUNNING)


def test_operator_begins_verbose_logging_and_another_ends_it(people: People, execution: Execution) -> None:
    client = client_of(people.operator)
    assert f'href="{PAGE}?execution={execution.pk}"' in execution_page(people.operator, execution)
    assert f'value="{execution.pk}"' in client.get(f"{PAGE}?execution={execution.pk}").text
    asked = {"subject": "execution", "execution": execution.pk, "reason": "Why <does> it wait?"}
    assert f"The execution {execution.pk} is logged in detail" in client.post(PAGE, asked, follow=True).text
    other = client_of(people.admin)
    page = other.get(PAGE).text
    assert people.operator.username in page
    assert "Why &lt;does&gt; it wait?" in page
    late = other.post(PAGE, asked)
    assert late.status_code == 422
    assert f"{people.operator.username} has it logged until" in late.text
    row = VerboseLogging.objects.get()
    assert row.until_at - row.from_at == timedelta(hours=1)
    assert "logged as usual again" in other.post(PAGE, {"end": str(row.pk)}, follow=True).text
    assert other.post(PAGE, {"end": str(row.pk)}).status_code == 422
    audited = AuditEntry.objects.filter(object_type="verboselogging").order_by("pk")
    assert [(entry.actor_name, entry.object_name) for entry in audited] == [
        (people.operator.username, f"execution {execution.pk}"),
        (people.admin.username, f"execution {execution.pk}"),
    ]
    assert audited[0].changes["reason"] == ["", "Why <does> it wait?"]
    assert "Verbose logs" in other.get("/audit-log/?kind=verboselogging").text


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"subject": "web", "reason": " "}, "Say why"),
        ({"subject": "sandbox", "reason": "x"}, "Choose a component"),
        ({"subject": "execution", "execution": "", "reason": "x"}, "There is no execution with this id"),
        ({"subject": "execution", "execution": "a\x00'", "reason": "x"}, "There is no execution with this id"),
        ({"end": "99999999999999999999"}, "has ended already"),
    ],
)
def test_a_refusal_says_why(people: People, asked: dict[str, str], words: str) -> None:
    answer = client_of(people.operator).post(PAGE, asked)
    assert answer.status_code == 422
    assert words in answer.text
    assert not VerboseLogging.objects.exists()


def test_verbose_logging_is_refused_for_ended_or_too_many(people: People, execution: Execution) -> None:
    now = timezone.now()
    begun = [VerboseLogging(execution=str(n), from_at=now, until_at=now + timedelta(hours=1)) for n in range(20)]
    VerboseLogging.objects.bulk_create(begun)
    client, asked = client_of(people.operator), {"subject": "execution", "execution": execution.pk, "reason": "x"}
    assert "End one of them first" in client.post(PAGE, asked).text
    Execution.objects.filter(pk=execution.pk).update(settled_at=now, ended_at=now, state=State.SUCCEEDED)
    assert "has ended" in client.post(PAGE, asked).text


def test_processes_get_verbose_times_of_component_and_executions(people: People, execution: Execution) -> None:
    now = timezone.now()
    verboselogging.begin(component="proxy", by=people.operator, reason="x", now=now)
    verboselogging.begin(execution=execution.pk, by=people.operator, reason="x", now=now)
    end = (now + timedelta(hours=1)).timestamp()
    assert verboselogging.times_of("proxy", now) == verboselogging.VerboseTimes(end, {execution.pk: end})
    assert verboselogging.times_of("web", now) == verboselogging.VerboseTimes(0.0, {execution.pk: end})
    later = now + timedelta(hours=1)
    assert verboselogging.times_of("proxy", later) == verboselogging.VerboseTimes()
    verboselogging.begin(component="web", by=people.operator, reason="x", now=later)
    assert VerboseLogging.objects.count() == 1, "what is over is deleted; the audit log keeps it"
