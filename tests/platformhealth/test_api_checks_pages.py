"""The page of the checks of the API: who sees and runs them, and what it says at each stage."""

from typing import Any

import pytest
from django.test import Client

from dashboard.platformhealth.viewmodels.api_checks import api_check_page
from grid.models import ApiCheckRun, AuditEntry
from grid.runtime import Runtime
from tests.conftest import People, client_of
from tests.support.platform import store_api_checks

URL = "/platform-health/api-checks/"
RUN = f"{URL}run/"


def test_operators_see_results_and_cannot_run_them(people: People, runtime: Runtime) -> None:
    store_api_checks(needs_shared=True, trouble="No.")
    client = client_of(people.operator)
    assert f'href="{RUN}' not in client.get(URL).content.decode()
    assert client.post(RUN).status_code == 403


def test_an_admin_reads_what_is_created_and_runs_them(admin: Client, runtime: Runtime) -> None:
    page = admin.get(URL).content.decode()
    assert "No check has been run." in page and f'href="{RUN}"' in page
    question = admin.get(RUN).content.decode()
    assert "creates a namespace with a name of its own" in question and "all of it is removed" in question
    assert "in compute-grid, the namespace of executions" in admin.get(f"{RUN}?where=shared").content.decode()
    page = admin.post(RUN, follow=True).content.decode()
    assert (
        "Waits for the controller" in page
        and "begins within seconds while a controller runs" in page
        and 'hx-trigger="every 2s"' in page
    )
    assert AuditEntry.objects.filter(object_type="apicheckrun").count() == 1
    assert "has not ended yet" in admin.post(RUN, follow=True).content.decode()
    run = ApiCheckRun.objects.get()
    assert (run.is_shared, run.ended_at) == (False, None)


def test_results_show_failures_first_with_server_words(admin: Client, runtime: Runtime) -> None:
    store_api_checks()
    page = admin.get(URL).content.decode()
    assert "1 check passed, 1 failed, 1 not run because a right is missing" in page
    assert "pods is &lt;forbidden&gt;" in page and "create jobs.batch" in page and "0.04 s" in page
    assert page.index("Watch pods") < page.index("Create, change and page")
    assert "hx-trigger" not in page


@pytest.mark.parametrize(
    ("fields", "severity", "word"),
    [
        ({"started_at": None, "ended_at": None, "results": []}, "wait", "Waits for the controller"),
        ({"ended_at": None}, "wait", "Running: 3 checks so far"),
        ({"trouble": "The controller may not.", "results": []}, "problem", "Not run"),
    ],
)
def test_its_state_is_told(db: None, fields: dict[str, Any], severity: str, word: str) -> None:
    page = api_check_page(store_api_checks(**fields))
    assert (page.status.severity, page.status.word) == (severity, word)


def test_admin_without_right_is_offered_the_executions_namespace(admin: Client, runtime: Runtime) -> None:
    store_api_checks(needs_shared=True, trouble="The controller may not create namespaces: no.", results=[])
    page = admin.get(URL).content.decode()
    assert f'href="{RUN}?where=shared"' in page and "The controller may not create namespaces: no." in page
