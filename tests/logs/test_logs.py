"""Logs over HTTP: pages of earlier and newer lines, search, downloads, previous runs, and what is said when there is no log."""

import re
from html import unescape
from typing import Any

import pytest
from pytest_django import Settings

from grid.core.errors import ClusterUnavailable, GridError, NotAllowed, Problem, Rejected, TooManyRequests
from grid.edge import textwork
from grid.edge.textwork import TextTooLong
from grid.kube.resources import PODS
from grid.models import Execution, ExecutionLog, ShippedLog, State
from grid.runtime import Runtime
from tests.clusters.clustering import head_pod, make_cluster, worker_pod
from tests.conftest import People, client_of, downloaded, execution_page as text
from tests.executions.executing import make_project, make_running, pod_of, put, read_executions
from tests.support.builders import MOMENT, NAMESPACE, container_status
from tests.support.cluster import FakeCluster
from tests.support.runtime import fill
from tests.support.textwork import FailingWorkers

pytestmark = pytest.mark.django_db(transaction=True)
MANY = [f"step {number}: {'ERROR lost' if number == 700 else 'fine'}" for number in range(5000)]
HOSTILE = "</code><script>alert(1)</script>\x1b[31m<img src=x onerror=alert(1)>\x1b]0;<b>\x07&lt;"


@pytest.fixture
def running(people: People, cluster: FakeCluster, runtime: Runtime) -> Execution:
    return make_running(people, cluster, runtime)


@pytest.fixture
def crowd(people: People, cluster: FakeCluster, runtime: Runtime) -> Execution:
    execution = make_cluster(people.owner, make_project(people.owner, people.teammate), started_at=MOMENT)
    for pod in (head_pod(execution.pk), worker_pod(execution.pk, "aaaaa"), worker_pod(execution.pk, "bbbbb")):
        cluster.put(PODS, pod)
    fill(runtime, cluster)
    read_executions(runtime)
    return execution


def write(cluster: FakeCluster, execution: Execution, *lines: str, **options: Any) -> None:
    values = {"namespace": NAMESPACE, "container": "run", **options}
    cluster.set_log(values.pop("pod", execution.object_name), lines, **values)


def lines_of(page: str) -> list[str]:
    return [unescape(re.sub("<.*?>", "", code)) for code in re.findall(r"<code>(.*?)</code>", page)]


def attribute(page: str, name: str) -> str:
    match = re.search(rf'data-{name}="([^"]*)"', page)
    assert match
    return unescape(match[1])


def end_it(execution: Execution, runtime: Runtime, log: str) -> None:
    Execution.objects.filter(pk=execution.pk).update(state=State.SUCCEEDED, ended_at=MOMENT, settled_at=MOMENT)
    ExecutionLog.objects.create(execution=execution, text=log)
    read_executions(runtime)


def test_a_log_is_for_whoever_may_see_the_execution(people: People, running: Execution, cluster: FakeCluster) -> None:
    write(cluster, running, "hello")
    pod = f"/pods/{NAMESPACE}/{running.object_name}/log/?part=rows"
    for user in (people.teammate, people.operator):
        for query in ("", "?part=rows", "?download=1"):
            answer, body = downloaded(user, f"/executions/{running.pk}/log/{query}")
            assert (answer.status_code, b"hello" in body) == (200, True)
        assert client_of(user).get(pod).status_code == 200


def test_unknown_container_becomes_the_usual_one(people: People, running: Execution, cluster: FakeCluster) -> None:
    write(cluster, running, "hello")
    assert "hello" in text(people.owner, running, "log/?container=../../secrets&pod=other")


def test_log_link_has_execution_id_and_says_limits(
    people: People, running: Execution, cluster: FakeCluster, settings: Settings
) -> None:
    write(cluster, running, "one")
    assert "All lines in" not in text(people.owner, running, "?tab=log")
    settings.LOG_LINK = "https://logs.example.com/explore?q=%7Bexecution%7D&id={execution}"
    settings.LOG_LINK_NAME = "Loki <b>"
    page = text(people.owner, running, "?tab=log")
    assert f'href="https://logs.example.com/explore?q=%7Bexecution%7D&amp;id={running.pk}"' in page
    assert "All lines in Loki &lt;b&gt;" in page
    assert "missing there" not in page
    ShippedLog.objects.create(execution=running, sent=8, lost=2, at=MOMENT)
    assert "(2 lines missing there)" in text(people.owner, running, "?tab=log")


def test_hostile_lines_are_text_on_both_pages(people: People, running: Execution, cluster: FakeCluster) -> None:
    write(cluster, running, HOSTILE)
    for path in (f"/executions/{running.pk}/?tab=log", f"/pods/{NAMESPACE}/{running.object_name}/?tab=log"):
        page = client_of(people.owner).get(path).content.decode()
        assert lines_of(page) == ["</code><script>alert(1)</script><img src=x onerror=alert(1)>&lt;"]
        assert "<script>alert" not in page
        assert "<img src=x" not in page
        assert "\x1b" not in page


def test_earlier_line_links_reach_the_first_line(people: People, running: Execution, cluster: FakeCluster) -> None:
    write(cluster, running, *MANY[:1500])
    page = text(people.owner, running, "?tab=log")
    shown = lines_of(page)
    assert shown == MANY[1000:1500]
    assert len(cluster.requests) == 1
    pages = 1
    while link := re.search(r'href="([^"]*)" data-earlier', page):
        page = client_of(people.owner).get(unescape(link[1])).content.decode()
        assert "data-live" not in page
        assert "Back to the newest lines" in page
        shown = lines_of(page) + shown
        pages += 1
    assert shown == MANY[:1500]
    assert pages == 3
    assert "The first line" in page


def test_newer_lines_are_those_after_the_last_one(people: People, running: Execution, cluster: FakeCluster) -> None:
    write(cluster, running, *MANY[:20])
    after = attribute(text(people.owner, running, "log/?part=rows"), "after")
    assert lines_of(text(people.owner, running, f"log/?part=rows&after={after}")) == []
    write(cluster, running, *MANY[20:23], append=True)
    page = text(people.owner, running, f"log/?part=rows&after={after}")
    assert lines_of(page) == MANY[20:23]
    assert "data-live" in page
    assert "data-day" not in page  # it is still the same
    assert attribute(page, "after") > after


def test_a_search_looks_through_the_whole_log(people: People, running: Execution, cluster: FakeCluster) -> None:
    write(cluster, running, *MANY)
    for query in ("q=lost", "level=error", "q=STEP+700:&level=warning"):
        page = text(people.owner, running, f"?tab=log&{query}")
        assert lines_of(page) == [MANY[700]]
        assert "Show all lines" in page
    page = text(people.owner, running, "?tab=log&q=%3Cscript%3E")
    assert "No line matches." in page and 'value="&lt;script&gt;"' in page


def test_a_download_is_complete(people: People, running: Execution, cluster: FakeCluster) -> None:
    write(cluster, running, *MANY)
    whole = "".join(f"{line}\n" for line in MANY).encode()
    for path in (f"/executions/{running.pk}/log/", f"/pods/{NAMESPACE}/{running.object_name}/log/"):
        answer, file = downloaded(people.owner, f"{path}?download=1&q=lost")
        assert (file, answer["Content-Type"]) == (whole, "text/plain; charset=utf-8")
        assert answer["Content-Disposition"] == f'attachment; filename="{running.object_name}.log"'


def test_a_clusters_download_has_every_pod_under_its_heading(
    people: People, crowd: Execution, cluster: FakeCluster
) -> None:
    pods = [
        f"cluster-{crowd.pk}-{name}"
        for name in ("head-7d9f-abcde", "worker-6468bd54f7-aaaaa", "worker-6468bd54f7-bbbbb")
    ]
    for pod in pods:
        write(cluster, crowd, f"{pod} speaks", pod=pod)
    cluster.fail_next(ClusterUnavailable("refused"), verb="logs")
    _, file = downloaded(people.owner, f"/executions/{crowd.pk}/log/?download=1")
    assert file.decode() == (
        f"==> {pods[0]} <==\n\n--- The log is not complete. The cluster does not answer. Reload this page in a few seconds. ---\n"
        f"\n==> {pods[1]} <==\n{pods[1]} speaks\n\n==> {pods[2]} <==\n{pods[2]} speaks\n"
    )
    alone, file = downloaded(people.owner, f"/executions/{crowd.pk}/log/?download=1&pod={pods[1]}")
    assert file.decode() == f"{pods[1]} speaks\n"
    assert alone["Content-Disposition"] == f'attachment; filename="{pods[1]}.log"'


def test_merged_logs_are_paged_back_and_followed(people: People, crowd: Execution, cluster: FakeCluster) -> None:
    expected = []
    for place, name in enumerate(("head-7d9f-abcde", "worker-6468bd54f7-aaaaa")):
        lines = [f"2026-03-04T09:{n // 60:02}:{n % 60:02}.{place}Z {name} {n}" for n in range(600 - 500 * place)]
        write(cluster, crowd, *lines, pod=f"cluster-{crowd.pk}-{name}")
        expected += lines
    expected = [line.split(" ", 1)[1] for line in sorted(expected)]
    page = first = text(people.owner, crowd, "log/?part=rows")
    shown = lines_of(page)
    while before := attribute(page, "before"):
        page = text(people.owner, crowd, f"log/?part=rows&before={before}")
        shown = lines_of(page) + shown
    assert shown == expected
    # One pod's line is older than the newest that was shown, and arrives later.
    write(cluster, crowd, "2026-03-04T09:05:00Z late", pod=f"cluster-{crowd.pk}-worker-6468bd54f7-aaaaa", append=True)
    write(cluster, crowd, "2026-03-04T09:06:00Z new pod", pod=f"cluster-{crowd.pk}-worker-6468bd54f7-bbbbb")
    page = text(people.owner, crowd, f"log/?part=rows&after={attribute(first, 'after')}")
    assert lines_of(page) == ["late", "new pod"]


def test_log_before_restart_is_offered_if_present(
    people: People, running: Execution, cluster: FakeCluster, runtime: Runtime
) -> None:
    write(cluster, running, "now")
    write(cluster, running, "before", previous=True)
    assert lines_of(text(people.owner, running, "?tab=log&previous=1")) == ["now"]
    status = container_status(ready=True, restarts=1, lastState={"terminated": {"exitCode": 1}})
    put(runtime, cluster, PODS, pod_of(running.pk, name=running.object_name, phase="Running", statuses=[status]))
    assert "Before the last restart" in text(people.owner, running, "?tab=log")
    page = text(people.owner, running, "?tab=log&previous=1")
    assert lines_of(page) == ["before"]
    assert "data-live" not in page
    answer, file = downloaded(people.owner, f"/executions/{running.pk}/log/?download=1&previous=1")
    assert file == b"before\n"
    assert f"{running.object_name}-previous.log" in answer["Content-Disposition"]


def test_a_kept_log_is_paged_and_downloaded_whole(
    people: People, running: Execution, cluster: FakeCluster, runtime: Runtime
) -> None:
    lines = [f"2026-03-04T09:00:00Z {number}" for number in range(1200)]
    cluster.remove(PODS, running.object_name, namespace=NAMESPACE)
    fill(runtime, cluster)
    end_it(running, runtime, "\n".join(lines) + "\n")
    page = text(people.owner, running, "?tab=log")
    assert "The pod has ended. The whole log was kept." in page
    assert lines_of(page) == lines[-500:]
    page = text(people.owner, running, f"log/?part=rows&before={attribute(page, 'before')}")
    assert lines_of(page) == lines[200:700]
    page = text(people.owner, running, f"log/?part=rows&before={attribute(page, 'before')}")
    assert lines_of(page) == lines[:200]
    assert attribute(page, "before") == ""
    answer = client_of(people.teammate).get(f"/executions/{running.pk}/log/?download=1")
    assert answer.content.decode().splitlines() == lines
    ExecutionLog.objects.update(text="x" * 64 * 1024)
    assert "Only its end was kept: the last 64 KiB or 5,000 lines." in text(people.owner, running, "?tab=log")


def test_open_page_learns_the_end_of_execution(
    people: People, running: Execution, cluster: FakeCluster, runtime: Runtime
) -> None:
    write(cluster, running, "one")
    after = attribute(text(people.owner, running, "log/?part=rows"), "after")
    cluster.remove(PODS, running.object_name, namespace=NAMESPACE)
    fill(runtime, cluster)
    assert "data-live" in text(people.owner, running, f"log/?part=rows&after={after}")
    end_it(running, runtime, "one\n")
    page = text(people.owner, running, f"log/?part=rows&after={after}")
    assert attribute(page, "problem") == "The pod has ended. Reload this page to see what was kept of its log."
    assert "data-live" not in page
    assert lines_of(page) == []


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (TooManyRequests("later"), "The cluster limits our requests."),
        (ClusterUnavailable('Get "https://10.0.0.9:10250/containerLogs/a/b": x'), "The pod's node did not answer"),
        (NotAllowed("no"), "has to apply deploy/access.yaml"),
        (Rejected([Problem("", "container is waiting")]), "The cluster refused: container is waiting"),
    ],
)
def test_log_error_is_shown_on_page_and_as_download(
    people: People, running: Execution, cluster: FakeCluster, error: GridError, sentence: str
) -> None:
    cluster.fail_next(error, 2, verb="logs")
    assert sentence in unescape(text(people.owner, running, "?tab=log"))
    answer = client_of(people.owner).get(f"/executions/{running.pk}/log/?download=1")
    assert answer.status_code == 503
    assert sentence in answer.content.decode()
    assert not answer.has_header("Content-Disposition")


def test_slow_lines_are_left_out_with_a_download(
    people: People, running: Execution, cluster: FakeCluster, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(cluster, running, "hello")
    monkeypatch.setattr(textwork, "workers", FailingWorkers(TextTooLong()))
    for query in ("", "&q=hello"):
        page = text(people.owner, running, f"?tab=log{query}")
        assert "takes too long to read here. Download the log to read it." in page and lines_of(page) == []
    end_it(running, runtime, "kept")
    cluster.remove(PODS, running.object_name, namespace=NAMESPACE)
    fill(runtime, cluster)
    assert "Download the log to read it." in text(people.owner, running, "?tab=log")
