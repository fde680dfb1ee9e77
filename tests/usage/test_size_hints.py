"""What a person is told about the size of the next run: on the launch form, and on the page of a run that has ended."""

from datetime import timedelta
from typing import Any

import pytest

from grid.kube.resources import NODES
from grid.models import Execution, HardwareTier, PeakUse, Project, State
from grid.runtime import Runtime
from tests.conftest import People
from tests.executions.executing import make_environment, make_execution, make_project, make_tier
from tests.shell.browsing import page_at
from tests.support import builders
from tests.support.builders import MOMENT
from tests.support.cluster import FakeCluster
from tests.support.runtime import fill

GIB = 2**30


@pytest.fixture
def project(people: People, cluster: FakeCluster, runtime: Runtime) -> Project:
    cluster.put(NODES, builders.node("n1", cpu="16", memory="64Gi"))
    fill(runtime, cluster)
    make_environment()
    make_tier("small", cores="1", memory="4Gi", cost_per_hour="0.05")
    make_tier("large", cores="4", memory="16Gi", cost_per_hour="0.35", is_default=True)
    make_tier("huge", cores="8", memory="32Gi", cost_per_hour="0.90")
    return make_project(people.owner, people.teammate)


def tier(id: str) -> HardwareTier:
    return HardwareTier.objects.get(pk=id)


def ended(people: People, project: Project, *, memory: float = 3.0, minute: int = 0, **fields: Any) -> Execution:
    values: dict[str, Any] = {"state": State.SUCCEEDED, "kind": "workspace", "tier": tier("large"), **fields}
    at = MOMENT + timedelta(minutes=minute)
    execution = make_execution(people.owner, project, ended_at=at, settled_at=at, **values)
    PeakUse.objects.create(
        execution=execution,
        memory_peak_bytes=int(memory * GIB),
        cpu_peak_millicores=700,
        cpu_sum_millicores=4000,
        samples=20,
    )
    return execution


def page(user: Any, path: str) -> str:
    return " ".join(page_at(user, path).split())


def test_launch_form_tells_of_a_sufficient_smaller_tier(people: People, project: Project) -> None:
    for minute in range(3):
        ended(people, project, minute=minute)
    text = page(people.owner, "/launch/?kind=workspace&tier=large")
    assert (
        "Your last 3 runs with JupyterLab in Customer churn peaked at 3 of 16 GiB and 0.7 of 4 cores: "
        "Small is large enough, and saves $0.30 an hour." in text
    )
    assert '<label class="button" for="tier-small">Choose Small</label>' in text
    assert "would do" not in page(people.teammate, "/launch/?kind=workspace&tier=large")
    assert "would do" not in page(people.owner, "/launch/?kind=workspace&tier=small")


def test_other_titles_and_unmeasured_runs_do_not_count(people: People, project: Project) -> None:
    for minute in range(3):
        ended(people, project, minute=minute, title="Other")
    make_execution(people.owner, project, state=State.SUCCEEDED, ended_at=MOMENT, settled_at=MOMENT)
    assert "would do" not in page(people.owner, "/launch/?kind=workspace&tier=large")


def test_page_of_ended_run_tells_owner_and_observers_peak(people: People, project: Project) -> None:
    for minute in range(3):
        last = ended(people, project, minute=minute)
    path = f"/executions/{last.pk}/"
    peak = "It used at most 3 of 16 GiB and 0.7 of 4 cores (0.2 on average)."
    assert f"{peak} The last 3 runs like this peaked" in page(people.owner, path)
    assert f"/launch/?from={last.pk}&amp;tier=small" in page(people.owner, path)
    assert peak in page(people.operator, path)
    assert "tier=small" not in page(people.operator, path)
    assert "It used at most" not in page(people.teammate, path)


def test_larger_tier_is_a_link_after_out_of_memory(people: People, project: Project) -> None:
    fields: dict[str, Any] = {"state": State.FAILED, "reason": "out_of_memory"}
    failed = ended(people, project, memory=15.9, **fields)
    text = page(people.owner, f"/executions/{failed.pk}/")
    assert "It used 15.9 GiB of its memory limit of 16 GiB, and was stopped there." in text
    assert f'<a href="/launch/?from={failed.pk}&amp;tier=huge">Launch again on Huge (32 GiB)</a>' in text
    largest = ended(people, project, memory=31.9, tier=tier("huge"), **fields)
    text = page(people.owner, f"/executions/{largest.pk}/")
    assert "No tier that is offered for this has more memory. Ask an admin for a larger one" in text
